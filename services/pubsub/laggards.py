"""All subscribers that fell behind, served from the log turn by turn until they have caught up (pubsub.md 3.6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from services.pubsub.catchup import CatchUp, Overtaken
from services.pubsub.fanout import Fanout
from services.pubsub.recent import Recent
from services.pubsub.subscriber import Subscriber, Subscription
from services.store import StoreError
from services.store.log import Log, Place

log = logging.getLogger(__name__)

ROOM_BYTES = 256 << 10  # who has less than this waiting is sent more
PAUSE_S = 0.02  # between two looks whether anybody has room
AGAIN_S = 0.5  # after the store could not be read

Lost = Callable[[Subscriber, int], None]


class Laggards:
    """`lost` is told of those that the log has been trimmed under, and by how many messages."""

    def __init__(self, source: Log, fanout: Fanout, recent: Recent, lost: Lost) -> None:
        self.delivered = 0
        self._log = source
        self._fanout = fanout
        self._recent = recent
        self._lost = lost
        self._behind: dict[Subscriber, CatchUp] = {}
        self._some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._behind)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="slow subscribers")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def add(self, subscriber: Subscriber, place: Place) -> None:
        """From now on it is served from the log, from `place` on."""
        subscriber.place = place
        self._behind[subscriber] = CatchUp(subscriber, place)
        self._some.set()

    def subscribed(self, subscription: Subscription) -> None:
        if (catch_up := self._behind.get(subscription.subscriber)) is not None:
            catch_up.add(subscription)

    def unsubscribed(self, subscription: Subscription) -> None:
        if (catch_up := self._behind.get(subscription.subscriber)) is not None:
            catch_up.remove(subscription)

    def forget(self, subscriber: Subscriber) -> None:
        self._behind.pop(subscriber, None)

    # inside

    async def _run(self) -> None:
        while True:
            if not self._behind:
                self._some.clear()
                await self._some.wait()
            try:
                moved = False
                for catch_up in list(self._behind.values()):
                    moved = await self._serve(catch_up) or moved
                await asyncio.sleep(0 if moved else PAUSE_S)
            except StoreError as error:
                log.info("the log cannot be read: %s", error, extra={"action": "log_unread"})
                await asyncio.sleep(AGAIN_S)
            except Exception:
                log.exception("slow subscribers could not be served", extra={"action": "catch_up_failed"})
                await asyncio.sleep(AGAIN_S)

    async def _serve(self, catch_up: CatchUp) -> bool:
        """One turn; False if it had no room, or there was nothing for it."""
        subscriber, until = catch_up.subscriber, self._fanout.place
        if until is None or subscriber.wire.backlog() > ROOM_BYTES:
            return False
        if catch_up.place < until:
            entries = self._recent.after(catch_up.place)
            if entries is None:
                entries = await self._log.read(catch_up.place, until)
            if self._behind.get(subscriber) is not catch_up:  # gone meanwhile
                return False
            try:
                catch_up.take(entries, until)
            except Overtaken as overtaken:
                self._behind.pop(subscriber)
                self._lost(subscriber, overtaken.lost)
                return True
            self.delivered += catch_up.delivered
            catch_up.delivered = 0
        self._rejoin(catch_up)
        return True

    def _rejoin(self, catch_up: CatchUp) -> None:
        """Who has got as far as everybody else is served with everybody else."""
        subscriber = catch_up.subscriber
        subscriber.place = catch_up.place
        if catch_up.place == self._fanout.place:
            del self._behind[subscriber]
            subscriber.place = None
