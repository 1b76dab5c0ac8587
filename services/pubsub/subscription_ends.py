"""End subscriptions at a place in the log: messages before it are delivered first (pubsub.md 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.pubsub.fanout import Fanout
from services.pubsub.slow_consumers import SlowConsumers
from services.pubsub.subscriber import Subscriber, Subscription
from services.store.log import Place

Delivered = Callable[[], None]


@dataclass(slots=True)
class _Ending:
    left: list[Subscription]  # not yet served up to their end
    done: Delivered


class SubscriptionEnds:
    """At most one ending for each subscriber. One that does not read is bounded like any slow consumer (3.6)."""

    def __init__(self, fanout: Fanout, slow_consumers: SlowConsumers) -> None:
        self._fanout = fanout
        self._slow_consumers = slow_consumers
        self._endings: dict[Subscriber, _Ending] = {}

    def begin(self, subscriber: Subscriber, ends: list[Subscription], until: Place, done: Delivered) -> None:
        """Deliver to these subscriptions messages up to `until` and none after it. Then call `done`, once."""
        for subscription in ends:
            subscription.until = until
            self._fanout.end(subscription)
            self._slow_consumers.end(subscription)
        self._endings[subscriber] = _Ending(ends, done)
        self.check(subscriber)

    def forget(self, subscriber: Subscriber) -> None:
        """Drop the ending of a closed connection."""
        self._endings.pop(subscriber, None)

    def check_all(self) -> None:
        """Complete endings after the log was followed further."""
        for subscriber in tuple(self._endings):
            self.check(subscriber)

    def check(self, subscriber: Subscriber) -> None:
        """Complete the subscriber's ending if all its subscriptions are served."""
        ending = self._endings.get(subscriber)
        if ending is None:
            return
        ending.left = [subscription for subscription in ending.left if not self._is_served(subscription)]
        if not ending.left:
            del self._endings[subscriber]
            ending.done()

    def _is_served(self, subscription: Subscription) -> bool:
        since, until = subscription.since, subscription.until
        if since is None or until is None or since >= until:
            return True  # there are no messages between
        place = self._slow_consumers.place_of(subscription) or self._fanout.place
        return place is not None and place >= until
