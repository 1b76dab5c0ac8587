"""What all connections of a text pub/sub process share: the log, who is fed from it and how, counters."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from protos.pubsub import LF, encode_error
from services.kit.metrics import Metrics, Tally
from services.kit.readiness import Readiness
from services.pubsub import measures
from services.pubsub.backlogs import Backlogs
from services.pubsub.bridge import Bridge
from services.pubsub.endings import Endings
from services.pubsub.fanout import Fanout
from services.pubsub.feed import Feed
from services.pubsub.laggards import Laggards
from services.pubsub.recent import Recent
from services.pubsub.settings import PubsubSettings
from services.pubsub.subscriber import Subscriber, Subscription
from services.store import Source, Store, StoreError
from services.store.log import Log, LogSpec, Place, Tail, parse_place
from services.store.model import LOG_DOMAIN

log = logging.getLogger(__name__)

TICK_S = 0.25
AGAIN_S = 0.5


class PubsubService:
    """Made at once, started as soon as the store can be reached; until then it is not ready."""

    def __init__(self, settings: PubsubSettings, store: Store, metrics: Metrics) -> None:
        self.settings = settings
        self.store = store
        self.metrics = metrics
        self.tally = Tally(metrics)
        self.domain = store.open_domain(LOG_DOMAIN)
        self.log = Log(self.domain, LogSpec(settings.log.ack_level or "fsync"))
        self.recent = Recent()
        self.backlogs = Backlogs(settings.subscriber_bytes, settings.subscribers_bytes // settings.workers)
        self.fanout = Fanout(self.backlogs, self._fall_behind)
        self.laggards = Laggards(self.log, self.fanout, self.recent, self.backlogs, self._overtaken)
        self.endings = Endings(self.fanout, self.laggards)
        self.laggards.on_served = self.endings.look_at
        self.bridge = Bridge(self.log)
        self.feed: Feed | None = None
        self.readiness = Readiness(store=partial(store.fault_of, LOG_DOMAIN), log=self._log_fault)
        self.opened = asyncio.Event()  # the log can be used
        self.subscriptions = 0  # of all connections, with those whose OK is still to come
        self._closed_for = "the log is not open yet"
        self._subscribers: dict[Subscriber, None] = {}  # in the order in which they began
        self._tasks: list[asyncio.Task[None]] = []
        edge = metrics.edge
        self._deliveries = metrics.counter(measures.DELIVERIES).labels(edge)
        self._subscriptions = metrics.gauge(measures.SUBSCRIPTIONS).labels(edge)
        self._lost = metrics.counter(measures.LOST).labels(edge)
        self._slow = metrics.gauge(measures.SLOW).labels(edge)

    # life

    def start(self) -> None:
        self.tally.start()
        jobs = {"start": self._begin(), "ticks": self._keep_ticking()}
        self._tasks = [asyncio.create_task(job, name=f"pubsub {name}") for name, job in jobs.items()]

    async def _begin(self) -> None:
        while True:
            try:
                await self._open_log()
            except StoreError as error:
                if str(error) != self._closed_for:
                    self._closed_for = str(error)
                    log.warning("the log cannot be opened: %s", error, extra={"action": "log_waits"})
                self.bridge.refuse_waiting(error)
                await asyncio.sleep(AGAIN_S)
            else:
                return

    async def _open_log(self) -> None:
        """Raises StoreError."""
        promises, had = await self.store.promises.now(), await self.log.level()
        spec = self.settings.log.spec(promises.strictest(had))
        promises.check(spec.ack_level, had)
        await self.domain.pipe.ready()
        self.log.use(spec)
        await self.log.declare()
        await self.bridge.open()
        tail = Tail(self.store.connector, self.domain.keys, self.log.replicas)
        self.feed = Feed(self.log, tail, self.fanout, self.recent, self.settings.log.trim_s)
        self.feed.start(self._all_overtaken, self.laggards.add_late, self.endings.look)
        self.laggards.start()
        self.opened.set()

    def _log_fault(self) -> str | None:
        """Return why the log is not open or not followed, or None."""
        if self.feed is None:
            return self._closed_for
        return None if self.feed.trouble is None else str(self.feed.trouble)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.feed is not None:
            await self.feed.close()
        await self.laggards.close()
        await self.bridge.close()
        await self.store.close()
        await self.log.close()
        self._tick()
        await self.tally.close()

    async def _keep_ticking(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._tick()

    def _tick(self) -> None:
        self.backlogs.refresh()
        self._deliveries.inc(self.fanout.delivered + self.laggards.delivered)
        self.fanout.delivered = self.laggards.delivered = 0
        self._subscriptions.set(self.subscriptions)
        self._slow.set(len(self.laggards))

    # subscribers

    def subscribed(self, subscription: Subscription, since: Place) -> None:
        """The subscription gets what lies behind `since`."""
        self._subscribers[subscription.subscriber] = None
        subscription.since = since
        self.fanout.number(subscription)
        if self.fanout.place is not None and since < self.fanout.place:
            self.laggards.add_late(subscription, since)  # the answer was slower than the log
        else:
            self.fanout.add(subscription, since)
            self.laggards.subscribed(subscription)

    @property
    def subscribers(self) -> Iterable[Subscriber]:
        """Those that have a subscription, or had one, in the order in which they began."""
        return self._subscribers

    def unsubscribed(self, subscription: Subscription) -> None:
        if not subscription.is_late:
            self.fanout.remove(subscription)
        self.laggards.unsubscribed(subscription)

    def gone(self, subscriber: Subscriber) -> None:
        """Its connection is no more, or is closing. May be told twice."""
        self.subscriptions -= len(subscriber.by_identifier)
        self._subscribers.pop(subscriber, None)
        self.endings.forget(subscriber)
        self.laggards.forget(subscriber)
        self.backlogs.forget(subscriber)
        for subscription in subscriber.by_identifier.values():
            if subscription.since is not None and not subscription.is_late:
                self.fanout.remove(subscription)
        subscriber.by_identifier.clear()

    def _fall_behind(self, subscriber: Subscriber, place: Place) -> None:
        self.laggards.add(subscriber, place)

    def _overtaken(self, subscriber: Subscriber) -> None:
        """End a subscriber that the log was trimmed under (pubsub.md 3.6).

        It loses what the log still holds as well, up to its end, which only the store knows.
        """
        reached = [self._reached(s) for s in subscriber.by_identifier.values() if s.since is not None]
        is_within_a_line = subscriber.unfinished
        self.gone(subscriber)
        if not is_within_a_line:
            subscriber.begin_line()  # nothing else is written until the store has answered
        told = partial(self._tell_overtaken, subscriber, min(reached, default=None), is_within_a_line)
        self.log.head(Source(self.store.client(subscriber.wire.peer)), told)

    def _reached(self, subscription: Subscription) -> Place:
        """Return up to where a subscription has got what matches, or where it begins."""
        assert subscription.since is not None
        place = self.laggards.place_of(subscription) or self.fanout.place
        return subscription.since if place is None else max(place, subscription.since)

    def _tell_overtaken(
        self, subscriber: Subscriber, reached: Place | None, is_within_a_line: bool, head: str | StoreError
    ) -> None:
        end = self.fanout.place if isinstance(head, StoreError) else parse_place(head)
        lost = 1 if reached is None or end is None else max(end.serial - reached.serial, 1)
        wire = subscriber.wire
        self._lost.inc(lost)
        wire.refuse("slow_subscriber", f"{lost} messages lost")
        if is_within_a_line:  # its end is lost, too
            wire.abort()
            return
        wire.write(encode_error(f"slow subscriber: {lost} messages lost", b"\r\n" if subscriber.crlf else LF))
        wire.close()

    def _all_overtaken(self, first: Place) -> None:
        """This process was away from the store for longer than the log goes back: now it goes on behind `first`.

        Whoever is served from the log has a place of his own, and will hear of it there.
        """
        seen = self.fanout.place
        assert seen is not None
        for subscriber in list(self._subscribers):
            on_time = [
                s.since for s in subscriber.by_identifier.values() if s.since is not None and not s.is_late
            ]
            is_overtaken = max(min(on_time, default=first), seen).serial < first.serial
            if subscriber.place is None and is_overtaken:
                self._overtaken(subscriber)
