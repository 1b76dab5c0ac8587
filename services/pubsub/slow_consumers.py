"""Serve subscribers that fell behind from the log, in turns, until they have caught up (pubsub.md 3.6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from services.pubsub.backlogs import Backlogs
from services.pubsub.catchup import CatchUp, Overrun
from services.pubsub.fanout import Fanout
from services.pubsub.read_cache import ReadCache
from services.pubsub.recent_entries import RecentEntries
from services.pubsub.render import LongLine
from services.pubsub.subscriber import Subscriber, Subscription
from services.store import StoreError, StoreUnavailable
from services.store.log import Entry, Log, Place

log = logging.getLogger(__name__)

PAUSE_S = 0.02  # between two rounds in which no consumer had room
MORE_S = 50e-6  # the same for each consumer: those that are stuck cost little, however many
AGAIN_S = 0.5  # pause after the log could not be read


class SlowConsumers:
    """All slow consumers of a process: whole connections, and single subscriptions that began in the past."""

    def __init__(
        self,
        source: Log,
        fanout: Fanout,
        recent: RecentEntries,
        backlogs: Backlogs,
        overrun: Callable[[Subscriber], None],
    ) -> None:
        """overrun: ends a subscriber whose messages were trimmed from the log before it was sent them."""
        self.delivered = 0
        # called after each turn of a subscriber
        self.on_served: Callable[[Subscriber], None] = lambda _: None
        self._log = source
        self._fanout = fanout
        self._recent_entries = recent
        self.read_cache = ReadCache()
        self._backlogs = backlogs
        self._long_line = LongLine()
        self._overrun = overrun
        # subscribers with all their subscriptions, and single late subscriptions of subscribers that may keep up
        self.behind: dict[Subscriber | Subscription, CatchUp] = {}
        # unsubscribed, but a line was begun: at most one of each subscriber
        self._ending: dict[Subscriber, Subscription] = {}
        self._away_until = 0.0  # when to try the store again, in the loop's time
        self._some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """Return the number of subscribers that fell behind."""
        return sum(isinstance(consumer, Subscriber) for consumer in self.behind)

    def start(self) -> None:
        """Serve in the background."""
        self._task = asyncio.create_task(self._run(), name="slow subscribers")

    async def close(self) -> None:
        """Stop serving."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def add(self, subscriber: Subscriber, place: Place) -> None:
        """Serve a subscriber from the log, from `place` on."""
        subscriber.place = place
        self.behind[subscriber] = CatchUp(subscriber, None, place, self._backlogs, self._long_line)
        self._some.set()

    def add_late(self, subscription: Subscription, since: Place) -> None:
        """Serve a subscription from the log that began at a place already passed."""
        subscription.is_late = True
        catch_up = self.behind[subscription] = CatchUp(
            subscription.subscriber, subscription, since, self._backlogs, self._long_line
        )
        entries, until = self._recent_entries.after(since), self._fanout.place
        if entries is not None and until is not None and catch_up.may_go_on():
            self._step(catch_up, subscription, entries, until)
        self._some.set()

    def subscribed(self, subscription: Subscription) -> None:
        """Add a new subscription to its subscriber if that is behind."""
        if (catch_up := self.behind.get(subscription.subscriber)) is not None:
            catch_up.table.add(subscription)

    def unsubscribed(self, subscription: Subscription) -> None:
        """Stop serving a subscription; a line that was begun is completed."""
        if (late := self.behind.get(subscription)) is not None:
            if late.is_within_a_line:
                late.is_over = True
                self._ending[subscription.subscriber] = subscription
            else:
                self._end(subscription)
            return
        if (catch_up := self.behind.get(subscription.subscriber)) is not None:
            catch_up.table.remove(subscription)

    def end(self, subscription: Subscription) -> None:
        """Serve a subscription only up to its `until`."""
        if (catch_up := self._serving(subscription)) is not None:
            catch_up.table.has_ends = True

    def place_of(self, subscription: Subscription) -> Place | None:
        """Return up to where a subscription was served; None if it keeps up."""
        catch_up = self._serving(subscription)
        return None if catch_up is None else catch_up.place

    def _serving(self, subscription: Subscription) -> CatchUp | None:
        if subscription.is_late:
            return self.behind.get(subscription)
        return self.behind.get(subscription.subscriber)

    def forget(self, subscriber: Subscriber) -> None:
        """Stop serving a closed connection."""
        self._end(subscriber)
        if (ending := self._ending.get(subscriber)) is not None:
            self._end(ending)
        for subscription in subscriber.by_identifier.values():
            if subscription.is_late:
                self._end(subscription)

    async def _run(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            if not self.behind:
                self._long_line.forget()
                self._some.clear()
                await self._some.wait()
            self.read_cache.next_round(now())
            moved = False
            for consumer, catch_up in list(self.behind.items()):
                if await self._serve_safely(catch_up, consumer, now()):
                    moved = True
                    await asyncio.sleep(0)  # let other work run between turns
            await asyncio.sleep(0 if moved else PAUSE_S + len(self.behind) * MORE_S)

    async def _serve_safely(self, catch_up: CatchUp, consumer: Subscriber | Subscription, now: float) -> bool:
        """Serve one turn; after an error only this consumer pauses."""
        if self.behind.get(consumer) is not catch_up:
            return False  # it disconnected or caught up while others were served
        try:
            return await self._serve(catch_up, consumer, now)
        except StoreError as error:
            text = "cannot read the log, a slow subscriber waits: %s"
            log.info(text, error, extra={"action": "log_unread"})
            now = asyncio.get_running_loop().time()  # the call may have taken long
            if isinstance(error, StoreUnavailable):
                self._away_until = now + AGAIN_S
        except Exception:
            text = "internal error, a slow subscriber waits"
            log.exception(text, extra={"action": "catch_up_failed"})
        catch_up.rests_until = now + AGAIN_S
        return False

    async def _serve(self, catch_up: CatchUp, consumer: Subscriber | Subscription, now: float) -> bool:
        """Serve one turn. Return whether it did anything. Raises StoreError."""
        until = self._fanout.place
        if until is None or now < catch_up.rests_until:
            return False
        if not catch_up.table.fill():
            return True
        if not catch_up.may_go_on():
            catch_up.subscriber.wire.watch_output()
            return False
        entries = self._in_memory(catch_up, until, now)
        if entries is None:
            if now < self._away_until:
                return False
            entries = await self._log.read(catch_up.place, until)
            if self.behind.get(consumer) is not catch_up:
                return False  # it disconnected meanwhile
            self.read_cache.keep(catch_up, entries, asyncio.get_running_loop().time())
            if not catch_up.may_go_on():
                return True  # another part of the connection began a line meanwhile
        return self._step(catch_up, consumer, entries, until)

    def _in_memory(self, catch_up: CatchUp, until: Place, now: float) -> list[Entry] | None:
        """Return the entries after the consumer's place; None if they have to be read."""
        if catch_up.place >= until:
            return []
        return self.read_cache.after(catch_up, now) or self._recent_entries.after(catch_up.place)

    def _step(
        self, catch_up: CatchUp, consumer: Subscriber | Subscription, entries: list[Entry], until: Place
    ) -> bool:
        """Send one turn. Return whether it did anything."""
        moved = self._take(catch_up, consumer, entries, until)
        self.on_served(catch_up.subscriber)
        return moved

    def _take(
        self, catch_up: CatchUp, consumer: Subscriber | Subscription, entries: list[Entry], until: Place
    ) -> bool:
        try:
            moved = catch_up.take(entries, until)
        except Overrun:
            self._overrun(catch_up.subscriber)
            return True
        self.delivered += catch_up.delivered
        catch_up.delivered = 0
        if self.behind.get(consumer) is not catch_up:
            return True  # its connection was closed at the end of a line
        if catch_up.is_over and not catch_up.is_within_a_line:
            self._end(consumer)
            return True
        if catch_up.place == self._fanout.place and not catch_up.is_within_a_line:
            self._caught_up(catch_up, consumer)
            return True
        return moved

    def _caught_up(self, catch_up: CatchUp, consumer: Subscriber | Subscription) -> None:
        """Let the fanout serve it again."""
        self._end(consumer)
        if isinstance(consumer, Subscriber):
            consumer.place = None
        else:
            consumer.is_late = False
            consumer.since = catch_up.place
            if consumer.until is None or catch_up.place < consumer.until:
                self._fanout.add(consumer, catch_up.place)
                self.subscribed(consumer)

    def _end(self, consumer: Subscriber | Subscription) -> None:
        """Stop serving a consumer if it is behind."""
        if (catch_up := self.behind.pop(consumer, None)) is None:
            return
        catch_up.is_ended = True
        self.read_cache.drop(catch_up)
        if catch_up.is_over:
            del self._ending[catch_up.subscriber]
