"""Hold what all connections of a text pub/sub process share: the log, the delivery to subscribers, the counters."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from services.kit.metrics import Metrics, Tally
from services.kit.readiness import Readiness
from services.pubsub import measures
from services.pubsub.backlogs import Backlogs
from services.pubsub.bridge import Bridge
from services.pubsub.fanout import Fanout
from services.pubsub.feed import Feed
from services.pubsub.overruns import Overruns
from services.pubsub.recent_entries import RecentEntries
from services.pubsub.settings import PubsubSettings
from services.pubsub.slow_consumers import SlowConsumers
from services.pubsub.subscriber import Subscriber, Subscription
from services.pubsub.subscription_ends import SubscriptionEnds
from services.store import Store, StoreError
from services.store.log import Log, LogSpec, Place, Tail
from services.store.model import LOG_DOMAIN

log = logging.getLogger(__name__)

TICK_S = 0.25
AGAIN_S = 0.5


class PubsubService:
    """The edge's service; it becomes ready once the store is reached and the log is open."""

    def __init__(self, settings: PubsubSettings, store: Store, metrics: Metrics) -> None:
        self.settings = settings
        self.store = store
        self.metrics = metrics
        self.tally = Tally(metrics)
        self.domain = store.open_domain(LOG_DOMAIN)
        self.log = Log(self.domain, LogSpec(settings.log.ack_level or "fsync"))
        self.recent_entries = RecentEntries()
        self.backlogs = Backlogs(settings.subscriber_bytes, settings.subscribers_bytes // settings.workers)
        self.fanout = Fanout(
            self.backlogs, lambda subscriber, place: self.slow_consumers.add(subscriber, place)
        )
        self.slow_consumers = SlowConsumers(
            self.log,
            self.fanout,
            self.recent_entries,
            self.backlogs,
            lambda subscriber: self.overruns.close(subscriber),
        )
        self.subscription_ends = SubscriptionEnds(self.fanout, self.slow_consumers)
        self.slow_consumers.on_served = self.subscription_ends.check
        lost = metrics.counter(measures.LOST).labels(metrics.edge)
        self.overruns = Overruns(self.log, store, self.fanout, self.slow_consumers, self.remove, lost.inc)
        self.bridge = Bridge(self.log)
        self.feed: Feed | None = None
        self.readiness = Readiness(store=partial(store.fault_of, LOG_DOMAIN), log=self._log_fault)
        self.opened = asyncio.Event()  # the log can be used
        self.subscriptions = 0  # of all connections, including those whose OK is still to come
        self._closed_for = "the log is not open yet"
        self.subscribers: dict[
            Subscriber, None
        ] = {}  # with subscriptions or past ones, in order of their first
        self._tasks: list[asyncio.Task[None]] = []
        edge = metrics.edge
        self._deliveries = metrics.counter(measures.DELIVERIES).labels(edge)
        self._subscriptions = metrics.gauge(measures.SUBSCRIPTIONS).labels(edge)
        self._slow = metrics.gauge(measures.SLOW).labels(edge)

    def start(self) -> None:
        """Open the log in the background, and serve."""
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
                    text = "cannot open the log, SENDs are refused: %s"
                    log.warning(text, error, extra={"action": "log_waits"})
                self.bridge.refuse_waiting(error)
                await asyncio.sleep(AGAIN_S)
            else:
                return

    async def _open_log(self) -> None:
        """Open the log and start all parts. Raises StoreError."""
        promises, had = await self.store.promises.now(), await self.log.level()
        spec = self.settings.log.spec(promises.strictest(had))
        promises.check(spec.ack_level, had)
        await self.domain.pipe.ready()
        self.log.use(spec)
        await self.log.declare()
        await self.bridge.open()
        tail = Tail(self.store.connector, self.domain.keys, self.log.replicas)
        self.feed = Feed(
            self.log,
            tail,
            self.fanout,
            self.recent_entries,
            self.settings.log.trim_s,
            lambda first: self.overruns.close_behind(list(self.subscribers), first),
            self.slow_consumers.add_late,
            self.subscription_ends.check_all,
        )
        self.feed.start()
        self.slow_consumers.start()
        self.opened.set()

    def _log_fault(self) -> str | None:
        """Return why the log is not open or not followed, or None."""
        if self.feed is None:
            return self._closed_for
        return None if self.feed.trouble is None else str(self.feed.trouble)

    async def close(self) -> None:
        """End all parts, then the connections to the store."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.feed is not None:
            await self.feed.close()
        await self.slow_consumers.close()
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
        self._deliveries.inc(self.fanout.delivered + self.slow_consumers.delivered)
        self.fanout.delivered = self.slow_consumers.delivered = 0
        self._subscriptions.set(self.subscriptions)
        self._slow.set(len(self.slow_consumers))

    # subscribers

    def subscribed(self, subscription: Subscription, since: Place) -> None:
        """Serve a subscription from `since` on."""
        self.subscribers[subscription.subscriber] = None
        subscription.since = since
        subscription.number = next(self.fanout.numbers)
        if self.fanout.place is not None and since < self.fanout.place:
            self.slow_consumers.add_late(subscription, since)  # the store's answer was slower than the log
        else:
            self.fanout.add(subscription, since)
            self.slow_consumers.subscribed(subscription)

    def unsubscribed(self, subscription: Subscription) -> None:
        """Stop serving a subscription."""
        if not subscription.is_late:
            self.fanout.remove(subscription)
        self.slow_consumers.unsubscribed(subscription)

    def remove(self, subscriber: Subscriber) -> None:
        """Stop serving a connection that has closed or is closing. May be called twice."""
        self.subscriptions -= len(subscriber.by_identifier)
        self.subscribers.pop(subscriber, None)
        self.subscription_ends.forget(subscriber)
        self.slow_consumers.forget(subscriber)
        self.backlogs.forget(subscriber)
        for subscription in subscriber.by_identifier.values():
            if subscription.since is not None and not subscription.is_late:
                self.fanout.remove(subscription)
        subscriber.by_identifier.clear()
