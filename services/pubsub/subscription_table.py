"""The subscriptions of somebody who is behind, by what they match: filled step by step, for there may be very many."""

from __future__ import annotations

from services.pubsub.router import Router
from services.pubsub.subscriber import Subscription, by_number
from services.store.log import START, Place

STEP = 1_000  # subscriptions that are put in at a time; others are served in between


class SubscriptionTable:
    """`fill` until it says True; then `wanted`."""

    def __init__(self, subscriptions: list[Subscription]) -> None:
        self._left = subscriptions  # still to be put in; of these
        self._gone: set[Subscription] = set()  # are not wanted any more
        self._router: Router[Subscription] = Router()
        self._youngest = START  # what no subscription began behind
        self._has_ends = False  # some subscription ends at a place
        self._matched: tuple[bytes, list[Subscription]] = (b"", [])  # the last tag's, in order
        self.fill()

    def fill(self) -> bool:
        """Whether all are in."""
        for _ in range(min(STEP, len(self._left))):
            subscription = self._left.pop()
            if subscription in self._gone:
                self._gone.discard(subscription)
            else:
                self.add(subscription)
        return not self._left

    def add(self, subscription: Subscription) -> None:
        self._router.add(subscription.tag, subscription.is_prefix, subscription)
        self._matched = (b"", [])
        if subscription.until is not None:
            self._has_ends = True
        if subscription.since is not None:
            self._youngest = max(self._youngest, subscription.since)

    def end(self) -> None:
        """Some subscription ends at a place from now on."""
        self._has_ends = True

    def remove(self, subscription: Subscription) -> None:
        self._matched = (b"", [])
        try:
            self._router.remove(subscription.tag, subscription.is_prefix, subscription)
        except KeyError:  # it was not in yet
            self._gone.add(subscription)

    def wanted(self, tag: bytes, place: Place) -> list[Subscription]:
        """Those that match the tag, began before the place and did not end, in the order in which they were made."""
        if self._matched[0] != tag:
            self._matched = (tag, sorted(self._router.match(tag), key=by_number))
        matched = self._matched[1]
        if self._youngest < place and not self._has_ends:
            return matched
        return [s for s in matched if s.is_open_at(place)]
