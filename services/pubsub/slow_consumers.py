"""All subscribers that fell behind, served from the log turn by turn until they have caught up (pubsub.md 3.6)."""

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

PAUSE_S = 0.02  # between two looks whether anybody has room
MORE_S = 50e-6  # for each who is behind: those that are stuck cost little, however many
AGAIN_S = 0.5  # after the log could not be read


class SlowConsumers:
    """`overtaken` is told of those that the log has been trimmed under, and ends them."""

    def __init__(
        self,
        source: Log,
        fanout: Fanout,
        recent: RecentEntries,
        backlogs: Backlogs,
        overtaken: Callable[[Subscriber], None],
    ) -> None:
        self.delivered = 0
        self.on_served: Callable[[Subscriber], None] = lambda _: None  # told after each turn of a subscriber
        self._log = source
        self._fanout = fanout
        self._recent_entries = recent
        self.read_cache = ReadCache()
        self._backlogs = backlogs
        self._long_line = LongLine()
        self._overtaken = overtaken
        # subscribers with all they have, and single subscriptions of subscribers that may well keep up
        self.behind: dict[Subscriber | Subscription, CatchUp] = {}
        # not wanted any more, but a line of it has been begun: one of each subscriber at most
        self._ending: dict[Subscriber, Subscription] = {}
        self._away_until = 0.0  # the store, in the loop's time
        self._some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """How many subscribers."""
        return sum(isinstance(whose, Subscriber) for whose in self.behind)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="slow subscribers")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def add(self, subscriber: Subscriber, place: Place) -> None:
        """From now on it is served from the log, from `place` on."""
        subscriber.place = place
        self.behind[subscriber] = CatchUp(subscriber, None, place, self._backlogs, self._long_line)
        self._some.set()

    def add_late(self, subscription: Subscription, since: Place) -> None:
        """Subscribed at a place that everybody here has passed already."""
        subscription.is_late = True
        catch_up = self.behind[subscription] = CatchUp(
            subscription.subscriber, subscription, since, self._backlogs, self._long_line
        )
        entries, until = self._recent_entries.after(since), self._fanout.place
        if entries is not None and until is not None and catch_up.may_go_on():
            self._step(catch_up, subscription, entries, until)
        self._some.set()

    def subscribed(self, subscription: Subscription) -> None:
        if (catch_up := self.behind.get(subscription.subscriber)) is not None:
            catch_up.add(subscription)

    def unsubscribed(self, subscription: Subscription) -> None:
        if (late := self.behind.get(subscription)) is not None:
            if late.is_within_a_line:
                late.is_over = True
                self._ending[subscription.subscriber] = subscription
            else:
                self._end(subscription)
            return
        if (catch_up := self.behind.get(subscription.subscriber)) is not None:
            catch_up.remove(subscription)

    def end(self, subscription: Subscription) -> None:
        """It gets nothing that lies behind its `until`."""
        if (catch_up := self._serving(subscription)) is not None:
            catch_up.end()

    def place_of(self, subscription: Subscription) -> Place | None:
        """Return up to where it was served; None if it keeps up."""
        catch_up = self._serving(subscription)
        return None if catch_up is None else catch_up.place

    def _serving(self, subscription: Subscription) -> CatchUp | None:
        if subscription.is_late:
            return self.behind.get(subscription)
        return self.behind.get(subscription.subscriber)

    def forget(self, subscriber: Subscriber) -> None:
        """Its connection has gone."""
        self._end(subscriber)
        if (ending := self._ending.get(subscriber)) is not None:
            self._end(ending)
        for subscription in subscriber.by_identifier.values():
            if subscription.is_late:
                self._end(subscription)

    # inside

    async def _run(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            if not self.behind:
                self._long_line.forget()
                self._some.clear()
                await self._some.wait()
            self.read_cache.next_round(now())
            moved = False
            for whose, catch_up in list(self.behind.items()):
                if await self._serve_safely(catch_up, whose, now()):
                    moved = True
                    await asyncio.sleep(0)  # a turn may cost much: others that keep up have theirs
            await asyncio.sleep(0 if moved else PAUSE_S + len(self.behind) * MORE_S)

    async def _serve_safely(self, catch_up: CatchUp, whose: Subscriber | Subscription, now: float) -> bool:
        """Whose stretch of the log cannot be read waits; the others go on."""
        if self.behind.get(whose) is not catch_up:
            return False  # it has gone, or arrived, while others were served
        try:
            return await self._serve(catch_up, whose, now)
        except StoreError as error:
            log.info("the log cannot be read: %s", error, extra={"action": "log_unread"})
            now = asyncio.get_running_loop().time()  # it may have been long in failing
            if isinstance(error, StoreUnavailable):
                self._away_until = now + AGAIN_S
        except Exception:
            log.exception("a slow subscriber could not be served", extra={"action": "catch_up_failed"})
        catch_up.rests_until = now + AGAIN_S
        return False

    async def _serve(self, catch_up: CatchUp, whose: Subscriber | Subscription, now: float) -> bool:
        """One turn; False if it brought nothing, mostly for want of room. Raises StoreError."""
        until = self._fanout.place
        if until is None or now < catch_up.rests_until:
            return False
        if not catch_up.prepare():
            return True
        if not catch_up.may_go_on():
            catch_up.subscriber.wire.watch_output()
            return False
        entries = self._in_memory(catch_up, until, now)
        if entries is None:
            if now < self._away_until:
                return False
            entries = await self._log.read(catch_up.place, until)
            if self.behind.get(whose) is not catch_up:
                return False  # it has gone meanwhile
            self.read_cache.keep(catch_up, entries, asyncio.get_running_loop().time())
            if not catch_up.may_go_on():
                return True  # meanwhile another part of the connection has begun a line
        return self._step(catch_up, whose, entries, until)

    def _in_memory(self, catch_up: CatchUp, until: Place, now: float) -> list[Entry] | None:
        """Entries that follow its place; None if they have to be read."""
        if catch_up.place >= until:
            return []
        return self.read_cache.after(catch_up, now) or self._recent_entries.after(catch_up.place)

    def _step(
        self, catch_up: CatchUp, whose: Subscriber | Subscription, entries: list[Entry], until: Place
    ) -> bool:
        """Sends a turn's worth; False if it is where it was, and behind."""
        moved = self._take(catch_up, whose, entries, until)
        self.on_served(catch_up.subscriber)
        return moved

    def _take(
        self, catch_up: CatchUp, whose: Subscriber | Subscription, entries: list[Entry], until: Place
    ) -> bool:
        try:
            moved = catch_up.take(entries, until)
        except Overrun:
            self._overtaken(catch_up.subscriber)
            return True
        self.delivered += catch_up.delivered
        catch_up.delivered = 0
        if self.behind.get(whose) is not catch_up:
            return True  # its connection ended with a line
        if catch_up.is_over and not catch_up.is_within_a_line:
            self._end(whose)
            return True
        if catch_up.place == self._fanout.place and not catch_up.is_within_a_line:
            self._arrived(catch_up, whose)
            return True
        return moved

    def _arrived(self, catch_up: CatchUp, whose: Subscriber | Subscription) -> None:
        """Who has got as far as everybody else is served with everybody else."""
        self._end(whose)
        if isinstance(whose, Subscriber):
            whose.place = None
        else:
            whose.is_late = False
            whose.since = catch_up.place
            if whose.until is None or catch_up.place < whose.until:
                self._fanout.add(whose, catch_up.place)
                self.subscribed(whose)

    def _end(self, whose: Subscriber | Subscription) -> bool:
        """It is not behind any more; False if it was not."""
        catch_up = self.behind.pop(whose, None)
        if catch_up is None:
            return False
        catch_up.is_ended = True
        self.read_cache.drop(catch_up)
        if catch_up.is_over:
            del self._ending[catch_up.subscriber]
        return True
