"""Subscriptions of one connection that are behind: what is sent from the log, and up to where (pubsub.md 3.6)."""

from __future__ import annotations

from bisect import bisect_right

from services.pubsub.backlogs import Backlogs
from services.pubsub.fanout import Fanout
from services.pubsub.render import for_client, render, runs
from services.pubsub.router import Router
from services.pubsub.subscriber import Subscriber, Subscription, by_number
from services.store.log import Entry, Place

OWN_TABLE = 1000  # subscriptions; a table of more would take too long to make whenever somebody falls behind


class Overtaken(Exception):
    """The log has been trimmed beyond the place of a subscriber."""

    def __init__(self, lost: int) -> None:
        super().__init__(lost)
        self.lost = lost  # messages, whether they would have matched or not


class CatchUp:
    """It goes on at `place`, line by line if it must: a message may match very many subscriptions of one connection."""

    def __init__(
        self,
        subscriber: Subscriber,
        late: Subscription | None,
        place: Place,
        backlogs: Backlogs,
        fanout: Fanout,
    ) -> None:
        """late: it alone; None: all of the subscriber's that are not late."""
        self.subscriber = subscriber
        self._late = late
        self._backlogs = backlogs
        self.place = place  # every line up to here has been dealt with
        self.delivered = 0  # MESSAGE lines since somebody last looked
        self.rests_until = 0.0  # in the loop's time: the log could not be read for it
        self._sent_of_next = 0  # number of the last subscription that has the line behind `place` already
        self._turn = self._left = (
            0  # octets of output: at most, and still to come before the others have their turn
        )
        self._long = 0  # octets of the line that comes next and has to wait for room
        self._fanout = fanout
        self._own: Router[Subscription] | None = None
        self._youngest = place  # what no subscription of the own table began behind
        self._matched: tuple[bytes, int, list[Subscription]] = (b"", 0, [])  # the last tag's, in order
        if late is not None or len(subscriber.by_identifier) <= OWN_TABLE:
            self._own = Router()
            for subscription in self._subscriptions():
                self.add(subscription)

    def _subscriptions(self) -> list[Subscription]:
        if self._late is not None:
            return [self._late]
        return [s for s in self.subscriber.by_identifier.values() if s.since is not None and not s.is_late]

    def add(self, subscription: Subscription) -> None:
        if self._own is not None:
            self._own.add(subscription.tag, subscription.is_prefix, subscription)
        self._matched = (b"", 0, [])
        if subscription.since is not None:
            self._youngest = max(self._youngest, subscription.since)

    def remove(self, subscription: Subscription) -> None:
        self._matched = (b"", 0, [])
        self._long = 0  # perhaps it was for this one
        if self._own is not None:
            self._own.remove(subscription.tag, subscription.is_prefix, subscription)

    def may_go_on(self) -> bool:
        """False while there is no room, for anything or for the long line that comes next."""
        if self.subscriber.wire.backlog() > self._backlogs.turn().room:
            return False
        return not self._long or self._backlogs.takes_line(self.subscriber, self._long)

    def take(self, entries: list[Entry], until: Place) -> bool:
        """Sends what matches, a turn's worth of it. `entries` follow `place`; there are no others up to `until`.

        False if it is where it was: there was nothing more, or no room for a long line. Raises Overtaken.
        """
        before = (self.place, self._sent_of_next)
        self._turn = self._left = self._backlogs.turn().most
        if not entries:
            self._skip_to(until)
        for entry in entries:
            if not self._take(entry):
                break
        return (self.place, self._sent_of_next) != before

    def _take(self, entry: Entry) -> bool:
        """False once the turn is over."""
        first = entry.place.serial - entry.messages
        if entry.place.era == self.place.era or first > self.place.serial:
            skip = max(0, self.place.serial - first)
        else:
            skip = 0  # the store's data went back in time: serials begin again
        self._skip_to(Place(entry.place.era, first + skip))
        for tag, run in runs(_without(entry.block, skip)):
            if not self._send(tag, run, self._wanted(tag, entry.place)):
                return False
        return True

    def _skip_to(self, place: Place) -> None:
        """There is nothing in the log up to `place`. Raises Overtaken if what was there was somebody's."""
        if place == self.place:
            return
        if place.serial > self.place.serial:
            began = [s.since for s in self._subscriptions() if s.since is not None]
            lost = place.serial - max(self.place, min(began, default=place)).serial
            if lost > 0:
                raise Overtaken(lost)
        self.place = place
        self._sent_of_next = self._long = 0

    def _wanted(self, tag: bytes, place: Place) -> list[Subscription]:
        """In the order in which they were made. There may be very many of them, and a turn for each few."""
        if self._matched[:2] != (tag, self._version()):
            self._matched = (tag, self._version(), sorted(self._match(tag), key=by_number))
        matched = self._matched[2]
        if self._own is not None and self._youngest < place:
            return matched
        return [s for s in matched if s.since is not None and s.since < place]

    def _version(self) -> int:
        return 0 if self._own is not None else self._fanout.version

    def _match(self, tag: bytes) -> list[Subscription]:
        if self._own is not None:
            return self._own.match(tag)
        return [each for each in self._fanout.match(tag) if each.subscriber is self.subscriber]

    def _send(self, tag: bytes, run: bytes, wanted: list[Subscription]) -> bool:
        lines = run.count(b"\n")
        if not wanted:
            self._forward(lines)
            return True
        if not self._sent_of_next and len(run) * len(wanted) <= self._left:
            self._write(render(run, tag, tuple(s.identifier for s in wanted)), lines * len(wanted))
            self._forward(lines)
            return True
        return all(self._send_line(tag, line, wanted) for line in run.splitlines(keepends=True))

    def _send_line(self, tag: bytes, line: bytes, wanted: list[Subscription]) -> bool:
        """One message to each that has not got it yet; some at a time, so that output stays within bounds."""
        at = bisect_right(wanted, self._sent_of_next, key=by_number)
        while at < len(wanted):
            if self._left <= 0 or not self._may_send(line):
                return False
            part = wanted[at : at + max(1, self._left // len(line))]
            at += len(part)
            self._write(render(line, tag, tuple(s.identifier for s in part)), len(part))
            self._sent_of_next = part[-1].number
        self._forward(1)
        return True

    def _may_send(self, line: bytes) -> bool:
        """A line that is longer than a turn waits until there is room for it beside other long ones."""
        self._long = len(line) if len(line) > self._turn else 0
        return not self._long or self._backlogs.takes_line(self.subscriber, self._long)

    def _write(self, rendered: bytes, lines: int) -> None:
        subscriber = self.subscriber
        data = for_client(rendered, subscriber.crlf, subscriber.ascii_only)
        subscriber.wire.write(data)
        self._backlogs.written(subscriber)
        self._left -= len(data)
        self.delivered += lines

    def _forward(self, lines: int) -> None:
        self.place = Place(self.place.era, self.place.serial + lines)
        self._sent_of_next = self._long = 0


def _without(block: bytes, lines: int) -> bytes:
    """The block without its first lines."""
    end = 0
    for _ in range(lines):
        end = block.index(b"\n", end) + 1
    return block[end:] if end else block
