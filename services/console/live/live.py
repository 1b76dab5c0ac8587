"""Poll all queues every two seconds while there are live views or requests, and keep the result.

One poll serves all. Requests are answered from the last one, so that they take no longer with a thousand queues than
with one; queues that the console itself changed are read again before the next response. After the first request,
polling continues at a lower rate without any, so that the first one after a pause does not wait for all queues.
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
from services.console.live.rows import RATES, Row, last_delivery, rates_of, summary_of, unread_row
from services.console.live.snapshot import Snapshot
from services.console.live.store_state import StoreState
from services.console.live.tombstones import Tombstones
from services.store import Store, StoreError
from services.store.catalogue import QueueListCache
from services.store.model import QueueUnknown, StoreFault
from services.store.processes import Process

log = logging.getLogger(__name__)

IDLE_REFRESH_S = 10.0  # without requests; a poll of a thousand queues takes 25 ms of CPU time
FIRST_WAIT_S = 0.01  # of the first request after a pause


class Live:
    """The polling task and its last result. Call `start` once, and `close` at the end."""

    def __init__(self, store: Store, refresh_s: float) -> None:
        self.refresh_s = refresh_s
        self.error: StoreError | None = None  # of the last poll
        self.state = StoreState(store)
        self.processes: list[Process] = []
        self._store = store
        self._queue_list = QueueListCache(store.registry)
        self._hooks: list[Callable[[], Awaitable[object]]] = []
        self._snapshot = Snapshot()
        self._tombstones = Tombstones()
        self._touched: set[str] = set()
        self._pending: set[str] = set()  # touched before the poll in progress
        self._lock = asyncio.Lock()
        self._polled = asyncio.Event()  # set, and replaced, after each poll
        self._failed: StoreError | None = None  # the last error
        self._interest = Interest()
        self._is_idle = True  # no poll since the last request
        self._task: asyncio.Task[None] | None = None

    def add_hook(self, hook: Callable[[], Awaitable[object]]) -> None:
        """Add a function to be called with each poll."""
        self._hooks.append(hook)

    def start(self) -> None:
        """Start polling."""
        self._task = asyncio.create_task(self._poll_forever(), name="console live")

    async def close(self) -> None:
        """Stop polling."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # for requests

    async def snapshot(self) -> Snapshot:
        """Return the last snapshot, with all changes that the console made before this call.

        It is no older than two refresh intervals, after a pause than two idle ones. Raises StoreError.
        """
        touched = set(self._touched)  # what jobs touch later is for the next request
        if self._is_idle_fresh() and not self._is_fresh():
            return await self._snapshot_after_pause(touched)
        self._interest.request()
        if self._is_fresh() and not self._touched and not self._pending:
            return self._snapshot  # also during a poll
        async with self._exclusive():
            if not self._is_fresh():
                await self._refresh()
            await self._refresh_each(self._touched & touched)
        return self._snapshot

    def _is_idle_fresh(self) -> bool:
        """Return whether there was a pause in requests, and the last idle poll is recent enough."""
        is_known = self._snapshot.is_within(2 * IDLE_REFRESH_S)
        return self._is_idle and is_known and self.error is None and not self._pending

    async def _snapshot_after_pause(self, touched: set[str]) -> Snapshot:
        """Return the next snapshot if it does not take long, else the last one. Raises StoreError."""
        try:
            if touched:
                async with self._exclusive():  # before the next poll
                    await self._refresh_each(self._touched & touched)
        finally:
            self._interest.request()  # if a queue cannot be read, the next poll shows that
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_WAIT_S):
                await self._polled.wait()
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self._snapshot

    def row(self, name: str) -> Row | None:
        """Return the queue's last row, if it is fresh."""
        self._interest.request()
        return self._snapshot.rows.get(name) if self._is_fresh() else None

    def _is_fresh(self) -> bool:
        return self._snapshot.is_within(2 * self.refresh_s)

    def touch(self, name: str) -> None:
        """Record that the console changed a queue or its messages."""
        self._touched.add(name)

    # for live views

    def watching(self) -> AbstractContextManager[None]:
        """Keep polling while the context is open."""
        return self._interest.watching()

    async def next(self) -> None:
        """Wait for the next poll, also if it fails."""
        await self._polled.wait()

    def since(self, version: int) -> tuple[list[Row], list[str], bool]:
        """Return rows changed after a version, names of deleted queues, and whether the rows are all rows."""
        rows = self._snapshot.rows
        if version <= self._tombstones.forgotten:
            return list(rows.values()), [], True
        changed = [row for row in rows.values() if row.version > version]
        return changed, self._tombstones.since(version, rows), False

    @property
    def version(self) -> int:
        """Return the version of the last snapshot; 0: none."""
        return self._snapshot.version

    def overview(self) -> dict[str, Any]:
        """Return the overview; needs a snapshot."""
        snapshot = self._snapshot
        edges = {
            "connections": sum(process.connections for process in self.processes),
            "edges": len(self.processes),
        }
        return {
            "store": self.state.document(self._queue_list.unreadable),
            "totals": {"queues": len(snapshot.rows), **snapshot.totals, **edges},
            "rates": snapshot.rates,
            "at": moment(snapshot.at_ms),
        }

    # polling

    @contextlib.asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        """Read one at a time. If a read fails, those waiting for it get its error at once."""
        failed = self._failed
        async with self._lock:
            if self._failed is not None and self._failed is not failed:
                raise self._failed.with_traceback(None)
            try:
                yield
            except StoreError as error:
                self._failed = error
                raise

    async def _poll_forever(self) -> None:
        while True:
            if self._interest.is_over:
                self._is_idle = True
                await self._interest.wait(IDLE_REFRESH_S if self._snapshot.version else None)
            began = time.monotonic()
            try:
                async with self._exclusive():
                    if began - self._snapshot.taken >= self.refresh_s / 2:  # unless a request has just polled
                        await self._refresh()
            except StoreError as error:
                self._fail(error)
            except Exception as error:  # reported to live views; the next poll tries again
                fields = {"action": "live_fault"}
                log.critical("store poll failed: internal error: %r", error, exc_info=error, extra=fields)
                self._fail(StoreFault("internal error: see the console's log"))
            self._notify()
            await asyncio.sleep(max(self.refresh_s - (time.monotonic() - began), 0))

    def _fail(self, error: StoreError) -> None:
        if self.error is None:
            fields = {"action": "live_failed", "reason": error.reason}
            log.warning("store poll failed; live views are out of date: %s", error, extra=fields)
        self.error = error

    def _notify(self) -> None:
        polled, self._polled = self._polled, asyncio.Event()
        polled.set()

    async def _refresh(self) -> None:
        """Poll all queues. On StoreError the last snapshot stays, and touched queues stay touched."""
        self._pending, self._touched = self._touched, set()
        try:
            await self._poll()
        except BaseException:
            self._touched |= self._pending
            raise
        finally:
            self._pending = set()

    async def _poll(self) -> None:
        began = time.monotonic()
        queues = await self._queue_list.refresh()
        stats = await self._store.listing.stats_of(queues)
        self.processes = await self._store.processes.running()
        await self.state.poll()
        for hook in self._hooks:
            await hook()
        before = self._snapshot
        new = Snapshot(before.version + 1, began, at_ms=await self._store.now_ms())
        await new.fill(before, queues, stats, self._queue_list.unreadable)
        self._snapshot = new
        for name in before.rows.keys() - new.rows.keys():
            self._tombstones.add(new.version, name)
        self.error = None
        self._is_idle = not self._interest.is_new

    async def _refresh_each(self, names: set[str]) -> None:
        """Read single queues. On StoreError those not read stay touched."""
        self._touched -= names
        self._pending = names
        try:
            for name in sorted(names):
                await self._refresh_one(name)
                names.discard(name)
        except BaseException:
            self._touched |= names
            raise
        finally:
            self._pending = set()

    async def _refresh_one(self, name: str) -> None:
        snapshot, old = self._snapshot, self._snapshot.rows.get(name)
        snapshot.version += 1
        try:
            queue, unreadable = await self._store.catalogue.find_leniently(name)
            figures = await self._store.listing.stats(queue)
        except QueueUnknown:
            if old is not None:
                snapshot.drop(name)
                self._tombstones.add(snapshot.version, name)
            return
        except StoreFault as error:
            if old is not None:  # damaged; a new queue is in the next poll
                unreadable = self._queue_list.unreadable.get(name, "")
                snapshot.rows[name] = unread_row(old.queue, old, error, snapshot.version, unreadable)
            return
        if old is not None and not (old.is_read and old.queue.qid == queue.qid):
            old = None
        rates = old.rates if old is not None else rates_of(RATES, figures, None, 0)
        base = old.base if old is not None else figures
        now = time.monotonic()
        delivered_at = last_delivery(figures, old, now)
        summary = summary_of(queue, figures, rates, unreadable, idle_s=now - delivered_at)
        age_ms = summary["oldestAgeMs"]
        snapshot.put(Row(queue, base, rates, summary, snapshot.version, age_ms, delivered_at))
