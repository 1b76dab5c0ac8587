"""Index the subscriptions of one slow consumer by tag, step by step: there may be very many."""

from __future__ import annotations

from services.pubsub.router import Router
from services.pubsub.subscriber import Subscription, by_number
from services.store.log import START, Place

STEP = 1_000  # subscriptions added at a time, before other consumers get a turn


class SubscriptionTable:
    """Call `fill` until it returns True; `wanted` then works."""

    def __init__(self, subscriptions: list[Subscription]) -> None:
        self._left = subscriptions  # still to be added
        self._removed: set[Subscription] = set()  # of those, to be left out
        self._router: Router[Subscription] = Router()
        self._youngest = START  # all subscriptions began here or before
        self.has_ends = False  # some subscription ends at a place: to be set when one gets its end
        # the last tag and its subscriptions, in order
        self._matched: tuple[bytes, list[Subscription]] = (b"", [])
        self.fill()

    def fill(self) -> bool:
        """Add some subscriptions. Return whether all are in."""
        for _ in range(min(STEP, len(self._left))):
            subscription = self._left.pop()
            if subscription in self._removed:
                self._removed.discard(subscription)
            else:
                self.add(subscription)
        return not self._left

    def add(self, subscription: Subscription) -> None:
        """Add a subscription."""
        self._router.add(subscription.tag, subscription.is_prefix, subscription)
        self._matched = (b"", [])
        if subscription.until is not None:
            self.has_ends = True
        if subscription.since is not None:
            self._youngest = max(self._youngest, subscription.since)

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        self._matched = (b"", [])
        try:
            self._router.remove(subscription.tag, subscription.is_prefix, subscription)
        except KeyError:  # not added yet
            self._removed.add(subscription)

    def wanted(self, tag: bytes, place: Place) -> list[Subscription]:
        """Return the subscriptions that match the tag and are open at the place, in the order they were made."""
        if self._matched[0] != tag:
            self._matched = (tag, sorted(self._router.match(tag), key=by_number))
        matched = self._matched[1]
        if self._youngest < place and not self.has_ends:
            return matched
        return [s for s in matched if s.is_open_at(place)]
