"""Subscriptions that end at a place in the log: what matches up to it is delivered first (pubsub.md 3.2)."""

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
    left: list[Subscription]  # those that have not been served up to their end
    done: Delivered


class SubscriptionEnds:
    """At most one a subscriber. A subscriber that does not read is bounded as any other slow one (3.6)."""

    def __init__(self, fanout: Fanout, slow_consumers: SlowConsumers) -> None:
        self._fanout = fanout
        self._slow_consumers = slow_consumers
        self._endings: dict[Subscriber, _Ending] = {}

    def begin(self, subscriber: Subscriber, ends: list[Subscription], until: Place, done: Delivered) -> None:
        """Deliver to these subscriptions what lies before `until`, and nothing behind it. Then call `done`, once."""
        for subscription in ends:
            subscription.until = until
            self._fanout.end(subscription)
            self._slow_consumers.end(subscription)
        self._endings[subscriber] = _Ending(ends, done)
        self.look_at(subscriber)

    def forget(self, subscriber: Subscriber) -> None:
        """Drop the ending of a connection that has gone."""
        self._endings.pop(subscriber, None)

    def look(self) -> None:
        """The log was followed further: end what has been served."""
        for subscriber in tuple(self._endings):
            self.look_at(subscriber)

    def look_at(self, subscriber: Subscriber) -> None:
        """A subscriber was served further: end what has been served."""
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
            return True  # nothing lies between
        place = self._slow_consumers.place_of(subscription) or self._fanout.place
        return place is not None and place >= until
