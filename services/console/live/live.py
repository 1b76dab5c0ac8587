"""How all queues are: looked at every two seconds while anybody wants to know, and told to whoever watches.

One look serves everybody. A question is answered out of the last one, so that it takes no longer with a thousand queues
than with one; what the console itself changed is looked at again before the next answer. Once somebody has asked, we go
on looking now and then while nobody does, for the first question after a while not to wait for a thousand queues.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any

from services.console.contract.moments import moment
from services.console.live.interest import Interest
from services.console.live.look import Look
from services.console.live.rows import RATES, Row, rates_of, summary_of, taken_at, unread_row
from services.console.live.state import StateOfStore
from services.console.live.tombstones import Gone
from services.store import Store, StoreError
from services.store.catalogue import QueueListCache
from services.store.model import QueueUnknown, StoreFault
from services.store.processes import Process

log = logging.getLogger(__name__)

REST_S = (
    10.0  # while nobody wants to know there is a look so often: of a thousand queues one is 25 ms of CPU time
)
SOON_S = 0.01  # the first question after a rest waits so long for a look


class Live:
    """`start` once; `close` at the end."""

    def __init__(self, store: Store, refresh_s: float) -> None:
        self.refresh_s = refresh_s
        self.trouble: StoreError | None = None  # why the last look failed
        self.state = StateOfStore(store)
        self.processes: list[Process] = []  # that run
        self._store = store
        self._queue_list = QueueListCache(store.registry)
        self._along: list[Callable[[], Awaitable[object]]] = []
        self._look = Look()
        self._gone = Gone()
        self._touched: set[str] = set()
        self._settling: set[str] = set()  # touched before the look that is being taken, which will show it
        self._lock = asyncio.Lock()
        self._told = asyncio.Event()  # set, and replaced, with each look
        self._failed: StoreError | None = None  # of the look that failed last
        self._interest = Interest()
        self._is_rested = True  # no look was taken since somebody wanted to know
        self._task: asyncio.Task[None] | None = None

    def along(self, look: Callable[[], Awaitable[object]]) -> None:
        """What else is looked at each time."""
        self._along.append(look)

    def start(self) -> None:
        self._task = asyncio.create_task(self._look_for_ever(), name="console live")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # for who asks once

    async def look(self) -> Look:
        """No older than two refreshes, or, where nobody had asked for a while, than two rests; and with everything that
        we had changed when it was asked. Raises StoreError."""
        asked_for = set(self._touched)  # jobs go on touching: the rest is for the next question
        if self._may_be_of_rest() and not self._is_fresh():
            return await self._look_after_rest(asked_for)
        self._interest.want()
        if self._is_fresh() and not self._touched and not self._settling:
            return self._look  # also while the next one is being taken
        async with self._turn():
            if not self._is_fresh():
                await self._renew()
            await self._renew_each(self._touched & asked_for)
        return self._look

    def _may_be_of_rest(self) -> bool:
        """Nobody had asked for a while, and there is a look of that while that is not too old."""
        is_known = self._look.is_within(2 * REST_S)
        return self._is_rested and is_known and self.trouble is None and not self._settling

    async def _look_after_rest(self, asked_for: set[str]) -> Look:
        """The next one if it does not take long, else the last one. Raises StoreError."""
        try:
            if asked_for:
                async with self._turn():  # before all others are looked at
                    await self._renew_each(self._touched & asked_for)
        finally:
            self._interest.want()  # where one cannot be asked, the next look says so, and shows the others
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SOON_S):
                await self._told.wait()
        if self.trouble is not None:
            raise self.trouble.with_traceback(None)
        return self._look

    def row(self, name: str) -> Row | None:
        """As it was seen last, if that is not long ago; the next look will be soon."""
        self._interest.want()
        return self._look.rows.get(name) if self._is_fresh() else None

    def _is_fresh(self) -> bool:
        return self._look.is_within(2 * self.refresh_s)

    def touch(self, name: str) -> None:
        """We changed this queue, or what is in it."""
        self._touched.add(name)

    # for who watches

    def watching(self) -> AbstractContextManager[None]:
        return self._interest.watching()

    async def next(self) -> None:
        """Returns with the next look, or when it failed."""
        await self._told.wait()

    def since(self, version: int) -> tuple[list[Row], list[str], bool]:
        """Rows that changed after this version, names of queues that went, and whether the rows are all there are."""
        rows = self._look.rows
        if version <= self._gone.forgotten:
            return list(rows.values()), [], True
        changed = [row for row in rows.values() if row.version > version]
        return changed, self._gone.since(version, rows), False

    @property
    def version(self) -> int:
        return self._look.version

    def overview(self) -> dict[str, Any]:
        """After the first look."""
        look = self._look
        edges = {
            "connections": sum(process.connections for process in self.processes),
            "edges": len(self.processes),
        }
        return {
            "store": self.state.told(self._queue_list.unreadable),
            "totals": {"queues": len(look.rows), **look.totals, **edges},
            "rates": look.rates,
            "at": moment(look.at_ms),
        }

    # looking

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One at a time. Who waited while another's look failed takes its error, and does not wait as long again."""
        failed = self._failed
        async with self._lock:
            if self._failed is not None and self._failed is not failed:
                raise self._failed.with_traceback(None)
            try:
                yield
            except StoreError as error:
                self._failed = error
                raise

    async def _look_for_ever(self) -> None:
        while True:
            if self._interest.is_over:
                self._is_rested = True
                await self._interest.wait(REST_S if self._look.version else None)
            began = time.monotonic()
            try:
                async with self._turn():
                    if began - self._look.taken >= self.refresh_s / 2:  # somebody who asked had just looked
                        await self._renew()
            except StoreError as error:
                self._fail(error)
            except Exception as error:  # a fault of ours: who watches is told, and it is tried again
                log.critical("a look failed: %r", error, exc_info=error, extra={"action": "live_fault"})
                self._fail(StoreFault("a fault of our own: the log says more"))
            self._tell()
            await asyncio.sleep(max(self.refresh_s - (time.monotonic() - began), 0))

    def _fail(self, error: StoreError) -> None:
        if self.trouble is None:
            log.warning("no live view: %s", error, extra={"action": "live_failed", "reason": error.reason})
        self.trouble = error

    def _tell(self) -> None:
        told, self._told = self._told, asyncio.Event()
        told.set()

    async def _renew(self) -> None:
        """Raises StoreError; then the last look stays, and what we changed is still to be looked at."""
        self._settling, self._touched = self._touched, set()
        try:
            await self._take()
        except BaseException:
            self._touched |= self._settling
            raise
        finally:
            self._settling = set()

    async def _take(self) -> None:
        began = time.monotonic()
        queues = await self._queue_list.refresh()
        looked = await self._store.listing.stats_of(queues)
        self.processes = await self._store.processes.running()
        await self.state.look()
        for other in self._along:
            await other()
        before, look = self._look, Look(self._look.version + 1, began, at_ms=await self._store.now_ms())
        self._look = await look.compared(before, queues, looked, self._queue_list.unreadable)
        for name in before.rows.keys() - look.rows.keys():
            self._gone.add(look.version, name)
        self.trouble = None
        self._is_rested = not self._interest.is_new

    async def _renew_each(self, names: set[str]) -> None:
        """Raises StoreError; then what was not looked at is still to be."""
        self._touched -= names
        self._settling = names
        try:
            for name in sorted(names):
                await self._renew_one(name)
                names.discard(name)
        except BaseException:
            self._touched |= names
            raise
        finally:
            self._settling = set()

    async def _renew_one(self, name: str) -> None:
        look, old = self._look, self._look.rows.get(name)
        look.version += 1
        try:
            queue, unreadable = await self._store.catalogue.find_leniently(name)
            figures = await self._store.listing.stats(queue)
        except QueueUnknown:
            if old is not None:
                look.drop(name)
                self._gone.add(look.version, name)
            return
        except StoreFault as error:
            if old is not None:  # it is damaged; one that nobody saw before is in the next look
                unreadable = self._queue_list.unreadable.get(name, "")
                look.rows[name] = unread_row(old.queue, old, error, look.version, unreadable)
            return
        if old is not None and not (old.is_read and old.queue.qid == queue.qid):
            old = None
        rates = old.rates if old is not None else rates_of(RATES, figures, None, 0)
        base = old.base if old is not None else figures
        now = time.monotonic()
        taken = taken_at(figures, old, now)
        summary = summary_of(queue, figures, rates, unreadable, untaken_s=now - taken)
        look.put(Row(queue, base, rates, summary, look.version, summary["oldestAgeMs"], taken))
