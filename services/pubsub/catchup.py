"""Serve the subscriptions of a connection that fell behind, from the log (pubsub.md 3.6)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from services.pubsub.backlogs import Backlogs
from services.pubsub.render import LongLine, for_client, message_bytes, render, runs
from services.pubsub.subscriber import Subscriber, Subscription, by_number
from services.pubsub.subscription_table import SubscriptionTable
from services.store.log import Entry, Place

TURN_RUNS = 2_000  # runs of lines of one tag that a turn examines, matching or not
PIECES = 16  # most pieces of one line


class Overrun(Exception):
    """The log was trimmed past a subscriber's place."""


@dataclass(slots=True)
class _Begun:
    """A MESSAGE line of which a part has been sent."""

    identifier: bytes
    number: int  # of the subscription, which may have ended meanwhile
    crlf: bool
    sent: int  # octets


class CatchUp:
    """Sends from `place` on in turns of bounded size, even within a message: it may match very many subscriptions.

    A line too long for a turn is sent in pieces, so that output stays bounded without waiting for a large buffer.
    """

    def __init__(
        self,
        subscriber: Subscriber,
        late: Subscription | None,
        place: Place,
        backlogs: Backlogs,
        long_line: LongLine,
    ) -> None:
        """late: serve only this subscription; None: all of the subscriber's that are not late."""
        self.subscriber = subscriber
        self.place = place  # every line up to here is done
        self.delivered = 0  # MESSAGE lines not yet counted
        self.rests_until = 0.0  # in the loop's time, after the log could not be read
        self.is_over = False  # unsubscribed; only a line that was begun is still completed
        self.is_ended = False  # no longer served
        self._backlogs = backlogs
        self._long_line = long_line
        self._late = late
        self._sent_of_next = 0  # number of the last subscription that already has the line after `place`
        self._begun: _Begun | None = None  # of that line
        self._turn = self._left = self._runs_left = 0  # octets of a turn; octets and runs left of this one
        self.table = SubscriptionTable(self._subscriptions())

    def _subscriptions(self) -> list[Subscription]:
        if self._late is not None:
            return [self._late]
        return [s for s in self.subscriber.by_identifier.values() if s.since is not None and not s.is_late]

    def may_go_on(self) -> bool:
        """Return whether there is room for a turn, and no line of another part of the connection is unfinished."""
        if self.subscriber.unfinished and self._begun is None:
            return False
        return self.subscriber.wire.backlog() <= self._backlogs.turn().room

    @property
    def is_within_a_line(self) -> bool:
        """Return True if a line has been sent in part."""
        return self._begun is not None

    def take(self, entries: list[Entry], until: Place) -> bool:
        """Send one turn of what matches. `entries`: those after `place`, up to `until`.

        Return whether anything was done. Raises Overrun.
        """
        before = (self.place, self._sent_of_next, self._begun and self._begun.sent)
        self._turn = self._left = self._backlogs.turn().most
        self._runs_left = TURN_RUNS
        if not entries:
            if self._begun is not None:  # the store's data went back in time: the rest of the line is gone
                raise Overrun
            self._skip_to(until)
        for entry in entries:
            if not self._take(entry):
                break
        return (self.place, self._sent_of_next, self._begun and self._begun.sent) != before

    def _take(self, entry: Entry) -> bool:
        """Return False once the turn is over."""
        first = entry.place.serial - entry.messages
        if entry.place.era == self.place.era or first > self.place.serial:
            skip = max(0, self.place.serial - first)
        else:
            skip = 0  # the store's data went back in time: serials begin again
        self._skip_to(Place(entry.place.era, first + skip))
        for tag, run in runs(_without(entry.block, skip)):
            if not self._runs_left or not self._send(tag, run, entry.place):
                return False
            self._runs_left -= 1
        return True

    def _skip_to(self, place: Place) -> None:
        """Skip to `place`, as the log has nothing before it. Raises Overrun if messages were trimmed."""
        if place == self.place:
            return
        if self._begun is not None:
            raise Overrun
        if place.serial > self.place.serial:
            began = [s.since for s in self._subscriptions() if s.since is not None]
            if place.serial > max(self.place, min(began, default=place)).serial:
                raise Overrun
        self.place = place
        self._sent_of_next = 0

    # one run of lines

    def _send(self, tag: bytes, run: bytes, place: Place) -> bool:
        """Return False once the turn is over."""
        lines = run.count(b"\n")
        wanted = self.table.wanted(tag, place)
        if self._begun is None and not self._sent_of_next:
            if not wanted:
                self._forward(lines)
                return True
            size = message_bytes(run, lines, [s.identifier for s in wanted], self.subscriber.ascii_only)
            if size <= self._left:
                self._write(render(run, tag, tuple(s.identifier for s in wanted)), lines * len(wanted))
                self._forward(lines)
                return True
        return all(self._send_line(tag, line, wanted) for line in run.splitlines(keepends=True))

    def _send_line(self, tag: bytes, line: bytes, wanted: list[Subscription]) -> bool:
        """Send one message to subscriptions that do not have it yet, as many as the turn allows."""
        if self._begun is not None and not self._send_piece(tag, line):
            return False
        if self.is_over or self.is_ended:
            return False
        at = bisect_right(wanted, self._sent_of_next, key=by_number)
        while at < len(wanted):
            if self._left <= 0:
                return False
            part = self._fitting(line, wanted, at)
            if not part:
                self._begin(wanted[at])
                if not self._send_piece(tag, line) or self.is_ended:
                    return False
                at += 1
                continue
            at += len(part)
            self._write(render(line, tag, tuple(s.identifier for s in part)), len(part))
            self._sent_of_next = part[-1].number
        self._forward(1)
        return True

    def _fitting(self, line: bytes, wanted: list[Subscription], at: int) -> list[Subscription]:
        """Return the subscriptions from `at` on that fit into the turn, at least one unless it needs pieces."""
        part: list[Subscription] = []
        size = 0
        for subscription in wanted[at : at + 1 + self._left // len(line)]:
            more = message_bytes(line, 1, [subscription.identifier], self.subscriber.ascii_only)
            if more > self._turn or (part and size + more > self._left):
                break
            part.append(subscription)
            size += more
        return part

    # a line in pieces

    def _begin(self, subscription: Subscription) -> None:
        """Begin a line in pieces; nothing else may be written to the connection until its end."""
        self.subscriber.begin_line()
        self._begun = _Begun(subscription.identifier, subscription.number, self.subscriber.crlf, 0)

    def _send_piece(self, tag: bytes, line: bytes) -> bool:
        """Send the next piece. Return whether it was the last."""
        begun = self._begun
        assert begun is not None
        if self._left <= 0:
            return False
        data = self._long_line.of(line, tag, begun.identifier, begun.crlf, self.subscriber.ascii_only)
        piece = data[begun.sent : begun.sent + max(self._left, len(data) // PIECES)]
        begun.sent += len(piece)
        self._put(piece)
        if begun.sent < len(data):
            return False
        self.delivered += 1
        self._sent_of_next = begun.number
        self._begun = None
        self.subscriber.end_line()
        return True

    def _write(self, rendered: bytes, lines: int) -> None:
        self._put(for_client(rendered, self.subscriber.crlf, self.subscriber.ascii_only))
        self.delivered += lines

    def _put(self, data: bytes) -> None:
        self.subscriber.wire.write(data)
        self._backlogs.written(self.subscriber)
        self._left -= len(data)

    def _forward(self, lines: int) -> None:
        self.place = Place(self.place.era, self.place.serial + lines)
        self._sent_of_next = 0


def _without(block: bytes, lines: int) -> bytes:
    """Return the block without its first lines."""
    end = 0
    for _ in range(lines):
        end = block.index(b"\n", end) + 1
    return block[end:] if end else block
