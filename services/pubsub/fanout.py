"""Deliver batches of the log to subscribers that keep up: from memory, rendered once for all that are alike."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import count

from services.pubsub.backlogs import Backlogs
from services.pubsub.render import for_client, one_tag, render, runs
from services.pubsub.router import Router
from services.pubsub.subscriber import Subscriber, Subscription, by_number
from services.store.log import Entry, Place

BATCH_BYTES = 4 << 20  # most output of one batch for a subscriber; beyond it the subscriber reads the log
CACHED = 1_000_000  # identifiers in all cached groups
TAG_COST = 32  # cost of a cached tag, and of each TAG_OCTETS of it, in identifiers
TAG_OCTETS = 1024

# Identifiers in the order in which their subscriptions were made (pubsub.md 3.3), their octets, their subscribers.
Group = tuple[tuple[bytes, ...], int, list[Subscriber]]
FallBehind = Callable[[Subscriber, Place], None]


def before(entry: Entry) -> Place:
    """Return the place before an entry."""
    return Place(entry.place.era, entry.place.serial - entry.messages)


class Fanout:
    """`place`: everything up to here was delivered to subscribers that keep up; None before the log is followed."""

    def __init__(self, backlogs: Backlogs, fall_behind: FallBehind) -> None:
        self.place: Place | None = None
        self.delivered = 0  # MESSAGE lines
        self._backlogs = backlogs
        self._fall_behind = fall_behind
        self._router: Router[Subscription] = Router()
        self._groups: dict[bytes, list[Group]] = {}  # cache, by tag
        self._cached = 0  # identifiers in it, or a little more
        self._removed: set[Subscription] = set()  # of the young ones
        self._young: list[tuple[Place, int, Subscription]] = []  # a heap: subscriptions that begin later
        self._ending: list[tuple[Place, int, Subscription]] = []  # a heap, by their end
        self.numbers = count(1)  # of subscriptions
        self._touched: list[Subscriber] = []

    # subscriptions

    def __len__(self) -> int:
        """Return the number of subscriptions that it serves, now or from a later place on."""
        return len(self._router) + len(self._young) - len(self._removed)

    def add(self, subscription: Subscription, since: Place) -> None:
        """Serve a subscription from `since` on, which is not before `place` (pubsub.md 3.2)."""
        if since == self.place:
            self._activate(subscription)
        else:
            heapq.heappush(self._young, (since, subscription.number, subscription))

    def end(self, subscription: Subscription) -> None:
        """Serve a subscription only up to its `until`."""
        assert subscription.until is not None
        heapq.heappush(self._ending, (subscription.until, subscription.number, subscription))
        if self.place is not None:
            self._retire(self.place)

    def remove(self, subscription: Subscription) -> None:
        """Stop serving a subscription."""
        has_ended = (
            subscription.until is not None and self.place is not None and subscription.until <= self.place
        )
        if not self._take_out(subscription) and not has_ended:  # a young one
            self._removed.add(subscription)

    def _take_out(self, subscription: Subscription) -> bool:
        """Remove a subscription from the router. Return whether it was there."""
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
        """Deliver the entries that follow `place`."""
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
        """Return where the next subscription begins or ends."""
        return min(heap[0][0] for heap in (self._young, self._ending) if heap)

    def _pass(self, place: Place) -> None:
        if self._young:
            for _, subscription in self._pop_young(lambda since: since <= place):
                self._activate(subscription)
        self._retire(place)

    def begin(self, place: Place) -> list[tuple[Place, Subscription]]:
        """Deliver from this place on. Return the subscriptions that began before it, with their places (3.2)."""
        self.place = place
        late = list(self._pop_young(lambda since: since < place))
        self._pass(place)
        return late

    def _pop_young(self, is_due: Callable[[Place], bool]) -> Iterator[tuple[Place, Subscription]]:
        while self._young and is_due(self._young[0][0]):
            since, _, subscription = heapq.heappop(self._young)
            if subscription in self._removed:
                self._removed.discard(subscription)
            else:
                yield since, subscription

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
        """Give a run to all matching subscribers. lines: how many it has; 0: unknown."""
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
        groups = self._groups[tag] = [
            (names, sum(map(len, names)), members) for names, members in alike.items()
        ]
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
        """Write the batch that began at `start`; subscribers without room for it fall behind."""
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
