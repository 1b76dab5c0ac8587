"""From batches of the log to subscribers: all that keep up get them from memory, rendered once for all alike."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable
from itertools import count

from services.pubsub.backlogs import Backlogs
from services.pubsub.render import for_client, one_tag, render, runs
from services.pubsub.router import Router
from services.pubsub.subscriber import Subscriber, Subscription, by_number
from services.store.log import Entry, Place

BATCH_BYTES = 4 << 20  # one batch never adds more to a subscriber's output: the rest it gets from the log
CACHED = 1_000_000  # identifiers in the groups of tags seen lately, all together
TAG_COST = 32  # what a tag without any counts, and what so many octets of it do
TAG_OCTETS = 1024

# Identifiers in the order in which their subscriptions were made (pubsub.md 3.3), their octets, and who has them.
Group = tuple[tuple[bytes, ...], int, list[Subscriber]]
FallBehind = Callable[[Subscriber, Place], None]


def before(entry: Entry) -> Place:
    """The place in front of an entry."""
    return Place(entry.place.era, entry.place.serial - entry.messages)


class Fanout:
    """`place`: up to where everything has been given to those that keep up; None before anything is known."""

    def __init__(self, backlogs: Backlogs, fall_behind: FallBehind) -> None:
        self.place: Place | None = None
        self.delivered = 0  # MESSAGE lines
        self._backlogs = backlogs
        self._fall_behind = fall_behind
        self._router: Router[Subscription] = Router()
        self._groups: dict[bytes, list[Group]] = {}  # of tags seen lately
        self._cached = 0  # identifiers in them, or a little more
        self._removed: set[Subscription] = set()  # young ones that wait for their time in vain
        self._young: list[tuple[Place, int, Subscription]] = []  # a heap: their time has not come yet
        self._ending: list[tuple[Place, int, Subscription]] = []  # a heap, by their end
        self._numbers = count(1)
        self._touched: list[Subscriber] = []

    # subscriptions

    def __len__(self) -> int:
        """Return how many subscriptions it serves, or will serve once their time has come."""
        return len(self._router) + len(self._young) - len(self._removed)

    def number(self, subscription: Subscription) -> None:
        """Those that are made later have greater numbers."""
        subscription.number = next(self._numbers)

    def add(self, subscription: Subscription, since: Place) -> None:
        """It gets what lies behind `since`, which may still be to come here, but has not passed (pubsub.md 3.2)."""
        if since == self.place:
            self._activate(subscription)
        else:
            heapq.heappush(self._young, (since, subscription.number, subscription))

    def end(self, subscription: Subscription) -> None:
        """It gets nothing that lies behind its `until`."""
        assert subscription.until is not None
        heapq.heappush(self._ending, (subscription.until, subscription.number, subscription))
        if self.place is not None:
            self._retire(self.place)

    def remove(self, subscription: Subscription) -> None:
        has_ended = (
            subscription.until is not None and self.place is not None and subscription.until <= self.place
        )
        if not self._take_out(subscription) and not has_ended:  # a young one
            self._removed.add(subscription)

    def _take_out(self, subscription: Subscription) -> bool:
        """Take it out of the router; return whether it was there."""
        try:
            self._router.remove(subscription.tag, subscription.is_prefix, subscription)
        except KeyError:
            return False
        self._forget_groups(subscription)
        return True

    def _activate(self, subscription: Subscription) -> None:
        self._router.add(subscription.tag, subscription.is_prefix, subscription)
        self._forget_groups(subscription)

    def _forget_groups(self, subscription: Subscription) -> None:
        if subscription.is_prefix:
            self._groups.clear()
            self._cached = 0
        else:
            self._groups.pop(subscription.tag, None)

    # batches

    def deliver(self, entries: list[Entry]) -> None:
        """The entries that follow `place`."""
        places = [entry.place for entry in entries]
        start = 0
        while (self._young or self._ending) and (place := self._next_change()) < places[-1]:
            end = bisect_right(places, place)
            self._deliver(entries[start:end])
            start = end
            self._pass(place)
        self._deliver(entries[start:])
        self.place = places[-1]
        self._pass(self.place)

    def _next_change(self) -> Place:
        """Where the next subscription begins or ends, if there is one."""
        return min(heap[0][0] for heap in (self._young, self._ending) if heap)

    def _pass(self, place: Place) -> None:
        self._grow_up(place)
        self._retire(place)

    def begin(self, place: Place) -> list[tuple[Place, Subscription]]:
        """Nothing before this place is delivered here. Answers whose time came before it, and when (pubsub.md 3.2)."""
        self.place = place
        late = []
        while self._young and self._young[0][0] < place:
            since, _, subscription = heapq.heappop(self._young)
            if subscription in self._removed:
                self._removed.discard(subscription)
            else:
                late.append((since, subscription))
        self._pass(place)
        return late

    def _grow_up(self, place: Place) -> None:
        while self._young and self._young[0][0] <= place:
            subscription = heapq.heappop(self._young)[2]
            if subscription in self._removed:
                self._removed.discard(subscription)
            else:
                self._activate(subscription)

    def _retire(self, place: Place) -> None:
        while self._ending and self._ending[0][0] <= place:
            self._take_out(heapq.heappop(self._ending)[2])

    def _deliver(self, entries: list[Entry]) -> None:
        if not entries or not len(self._router):
            return
        block = entries[0].block if len(entries) == 1 else b"".join([entry.block for entry in entries])
        lines = entries[0].messages if len(entries) == 1 else sum([entry.messages for entry in entries])
        if (tag := one_tag(block, lines)) is not None:
            self._give_all(tag, block, lines)
        else:
            for tag, run in runs(block):
                self._give_all(tag, run, 0)
        self._flush(before(entries[0]))

    def _give_all(self, tag: bytes, run: bytes, lines: int) -> None:
        """lines: how many the run has, 0 where that is not known."""
        found = self._groups.get(tag)
        if found is None:
            found = self._find_groups(tag)
        for group in found:
            self._give(run, lines or run.count(b"\n"), tag, group)

    def _find_groups(self, tag: bytes) -> list[Group]:
        found = self._router.match(tag)
        found.sort(key=by_number)
        identifiers: dict[Subscriber, list[bytes]] = {}
        for subscription in found:
            identifiers.setdefault(subscription.subscriber, []).append(subscription.identifier)
        alike: dict[tuple[bytes, ...], list[Subscriber]] = {}
        for subscriber, names in identifiers.items():
            alike.setdefault(tuple(names), []).append(subscriber)
        cost = len(found) + TAG_COST * (1 + len(tag) // TAG_OCTETS)
        self._cached += cost
        if self._cached > CACHED:
            self._groups.clear()
            self._cached = cost
        groups = self._groups[tag] = [(names, sum(map(len, names)), whose) for names, whose in alike.items()]
        return groups

    def _give(self, run: bytes, lines: int, tag: bytes, group: Group) -> None:
        identifiers, octets, subscribers = group
        keep_up = [subscriber for subscriber in subscribers if subscriber.place is None]
        if not keep_up:
            return
        too_much = len(run) * len(identifiers) + lines * octets > BATCH_BYTES
        rendered = b"" if too_much else render(run, tag, identifiers)
        forms: dict[tuple[bool, bool], bytes] = {}
        for subscriber in keep_up:
            form = (subscriber.crlf, subscriber.ascii_only)
            data = forms.get(form)
            if data is None:
                data = forms[form] = for_client(rendered, *form)
            if subscriber.put(data, lines * len(identifiers), BATCH_BYTES):
                self._touched.append(subscriber)
            if too_much:
                subscriber.size = BATCH_BYTES + 1

    def _flush(self, start: Place) -> None:
        """Writes the batch that began at `start`; who has not room for it gets it from the log later."""
        touched, self._touched = self._touched, []
        for subscriber in touched:
            out, subscriber.out = subscriber.out, None
            if out is None:
                continue
            too_much = subscriber.size > BATCH_BYTES or subscriber.unfinished
            if too_much or not self._backlogs.takes(subscriber, subscriber.size):
                self._fall_behind(subscriber, start)
            else:
                self.delivered += subscriber.lines
                subscriber.wire.write(out[0] if len(out) == 1 else b"".join(out))
