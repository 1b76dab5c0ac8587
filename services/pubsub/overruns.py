"""Close subscribers that lost messages: the log was trimmed past their place (pubsub.md 3.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from protos.pubsub import LF, encode_error
from services.pubsub.fanout import Fanout
from services.pubsub.slow_consumers import SlowConsumers
from services.pubsub.subscriber import Subscriber, Subscription
from services.store import Source, Store, StoreError
from services.store.log import Log, Place, parse_place


class Overruns:
    """The end of subscribers that lost messages, slow consumers (see `CatchUp`) and others."""

    def __init__(
        self,
        log: Log,
        store: Store,
        fanout: Fanout,
        slow_consumers: SlowConsumers,
        remove: Callable[[Subscriber], None],
        count_lost: Callable[[int], None],
    ) -> None:
        """remove: ends the service of a subscriber. count_lost: receives the number of messages lost."""
        self._log = log
        self._store = store
        self._fanout = fanout
        self._slow_consumers = slow_consumers
        self._remove = remove
        self._count_lost = count_lost

    def close_behind(self, subscribers: Iterable[Subscriber], first: Place) -> None:
        """Close subscribers that lost messages: this process did not see the log until it was trimmed up to `first`.

        Slow consumers detect this themselves, at their own places.
        """
        seen = self._fanout.place
        assert seen is not None
        for subscriber in subscribers:
            on_time = [
                s.since for s in subscriber.by_identifier.values() if s.since is not None and not s.is_late
            ]
            is_overrun = max(min(on_time, default=first), seen).serial < first.serial
            if subscriber.place is None and is_overrun:
                self.close(subscriber)

    def close(self, subscriber: Subscriber) -> None:
        """Close a subscriber whose messages were trimmed before it was sent them.

        It loses all messages up to the log's end, which only the store knows.
        """
        reached = [self._reached(s) for s in subscriber.by_identifier.values() if s.since is not None]
        is_within_a_line = subscriber.unfinished
        self._remove(subscriber)
        if not is_within_a_line:
            subscriber.begin_line()  # nothing else is written until the store has answered
        done = partial(self._close, subscriber, min(reached, default=None), is_within_a_line)
        self._log.head(Source(self._store.client(subscriber.wire.peer)), done)

    def _reached(self, subscription: Subscription) -> Place:
        """Return up to where a subscription was served, or where it begins."""
        assert subscription.since is not None
        place = self._slow_consumers.place_of(subscription) or self._fanout.place
        return subscription.since if place is None else max(place, subscription.since)

    def _close(
        self, subscriber: Subscriber, reached: Place | None, is_within_a_line: bool, head: str | StoreError
    ) -> None:
        end = self._fanout.place if isinstance(head, StoreError) else parse_place(head)
        lost = 1 if reached is None or end is None else max(end.serial - reached.serial, 1)
        wire = subscriber.wire
        self._count_lost(lost)
        wire.refuse("slow_subscriber", f"{lost} messages lost")
        if is_within_a_line:  # the end of the line is lost, too
            wire.abort()
            return
        wire.write(encode_error(f"slow subscriber: {lost} messages lost", b"\r\n" if subscriber.crlf else LF))
        wire.close()
