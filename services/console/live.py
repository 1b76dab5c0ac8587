"""How all queues are: looked at now and then while anybody wants to know, and told to whoever watches.

One look serves everybody. A question is answered out of the last one, so that it takes no longer with a thousand queues
than with one; what the console itself changed is looked at again before the next answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.console.moments import moment
from services.console.rows import (
    OCTET_RATES,
    RATES,
    Figures,
    Rates,
    Row,
    has_changed,
    rates_of,
    summary_of,
)
from services.console.state import StateOfStore
from services.store import Queue, Store, StoreError
from services.store.errors import QueueUnknown, StoreFault
from services.store.presence import Process
from services.store.roll import Roll

log = logging.getLogger(__name__)

INTEREST_S = 15.0  # after the last question we go on looking for so long
OLDEST_BASE_S = 60.0  # rates over longer than this would tell nothing of now
STRETCH = 100  # rows in a row, before others get a turn
GONE_KEPT = 5000  # names of deleted queues that are remembered for who watches
TOTALS = {"ready": "ready", "inFlight": "in_flight", "dead": "dead_letters", "bytes": "bytes"}
ALL_RATES = {**RATES, **OCTET_RATES}


@dataclass(slots=True)
class Look:
    """What was seen. `rows` by name, in the order of names."""

    version: int = 0
    taken: float = 0.0  # monotonic
    rows: dict[str, Row] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    rates: Rates = field(default_factory=lambda: dict.fromkeys(ALL_RATES))
    at_ms: int = 0  # by the store's clock


class Live:
    """`start` once; `close` at the end."""

    def __init__(self, store: Store, refresh_s: float) -> None:
        self.refresh_s = refresh_s
        self.trouble: StoreError | None = None  # why the last look failed
        self.state = StateOfStore(store)
        self.processes: list[Process] = []  # that run
        self._store = store
        self._roll = Roll(store.registry)
        self._look = Look()
        self._gone: deque[tuple[int, str]] = deque()
        self._forgotten = 0  # the newest version of which a deleted queue is not remembered
        self._touched: set[str] = set()
        self._lock = asyncio.Lock()
        self._told = asyncio.Event()  # set, and replaced, with each look
        self._wanted = asyncio.Event()
        self._asked = float("-inf")  # when somebody last wanted to know
        self._watchers = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._look_for_ever(), name="console live")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # for who asks once

    async def look(self) -> Look:
        """No older than two refreshes, and with everything that we changed. Raises StoreError."""
        self._want()
        async with self._lock:
            if time.monotonic() - self._look.taken > 2 * self.refresh_s or not self._look.version:
                await self._renew()
            while self._touched:
                await self._renew_one(self._touched.pop())
        return self._look

    def touch(self, name: str) -> None:
        """We changed this queue, or what is in it."""
        self._touched.add(name)

    # for who watches

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        self._watchers += 1
        self._want()
        try:
            yield
        finally:
            self._watchers -= 1
            self._asked = time.monotonic()

    async def next(self) -> None:
        """Returns with the next look, or when it failed."""
        await self._told.wait()

    def since(self, version: int) -> tuple[list[Row], list[str], bool]:
        """Rows that changed after this version, names of queues that went, and whether the rows are all there are."""
        look = self._look
        is_whole = version <= self._forgotten
        if is_whole:
            return list(look.rows.values()), [], True
        changed = [row for row in look.rows.values() if row.version > version]
        gone = dict.fromkeys(name for at, name in self._gone if at > version and name not in look.rows)
        return changed, list(gone), False

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
            "store": self.state.told(),
            "totals": {"queues": len(look.rows), **look.totals, **edges},
            "rates": look.rates,
            "at": moment(look.at_ms),
        }

    # looking

    def _want(self) -> None:
        self._asked = time.monotonic()
        self._wanted.set()

    async def _look_for_ever(self) -> None:
        while True:
            if not self._watchers and time.monotonic() - self._asked > INTEREST_S:
                self._wanted.clear()
                await self._wanted.wait()
            began = time.monotonic()
            try:
                async with self._lock:
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
        """Raises StoreError; then the last look stays."""
        began = time.monotonic()
        self._touched.clear()
        queues = await self._roll.look()
        found = await self._store.stats_of(queues)
        self.processes = await self._store.processes()
        await self.state.look()
        self._look = await self._made(
            Look(self._look.version + 1, began, at_ms=await self._store.now_ms()), queues, found
        )
        self.trouble = None

    async def _made(self, look: Look, queues: Sequence[Queue], found: Mapping[str, Figures]) -> Look:
        before, seconds = self._look, look.taken - self._look.taken
        if seconds > OLDEST_BASE_S:
            seconds = 0.0
        totals, sums = dict.fromkeys(TOTALS, 0), dict.fromkeys(ALL_RATES, 0.0)
        for number, queue in enumerate(queues):
            figures = found.get(queue.name)
            if figures is None:
                continue  # deleted meanwhile
            row = self._row(queue, figures, before.rows.get(queue.name), look.version, seconds)
            look.rows[queue.name] = row
            for name, of in TOTALS.items():
                totals[name] += figures[of]
            if number % STRETCH == STRETCH - 1:
                await asyncio.sleep(0)
        look.totals = totals
        self._sum(look, before, seconds, sums)
        for name in before.rows.keys() - look.rows.keys():
            self._remember_gone(look.version, name)
        return look

    def _row(self, queue: Queue, figures: Figures, old: Row | None, version: int, seconds: float) -> Row:
        if old is not None and old.queue.qid != queue.qid:
            old = None
        rates = rates_of(RATES, figures, old.base if old is not None else None, seconds)
        summary = summary_of(queue, figures, rates)
        age_ms = summary["oldestAgeMs"]
        if old is not None and not has_changed(summary, old):
            version, age_ms = old.version, old.told_age_ms
        return Row(queue, figures, rates, summary, version, age_ms)

    def _sum(self, look: Look, before: Look, seconds: float, sums: dict[str, float]) -> None:
        """Rates of all together; a queue that is new counts from the next look on."""
        if not before.version or not seconds:
            return
        for name, row in look.rows.items():
            old = before.rows.get(name)
            if old is not None and old.queue.qid == row.queue.qid:
                for rate, of in ALL_RATES.items():
                    sums[rate] += row.base[of] - old.base[of]
        look.rates = {rate: round(max(total, 0.0) / seconds, 2) for rate, total in sums.items()}

    async def _renew_one(self, name: str) -> None:
        look, old = self._look, self._look.rows.get(name)
        look.version += 1
        try:
            queue = await self._store.find(name)
            figures = await self._store.stats(queue)
        except QueueUnknown:
            if old is not None:
                del look.rows[name]
                self._remember_gone(look.version, name)
            return
        is_same = old is not None and old.queue.qid == queue.qid
        rates = old.rates if old is not None and is_same else rates_of(RATES, figures, None, 0)
        base = old.base if old is not None and is_same else figures
        summary = summary_of(queue, figures, rates)
        look.rows[name] = Row(queue, base, rates, summary, look.version, summary["oldestAgeMs"])
        if old is None:
            look.rows = dict(sorted(look.rows.items()))

    def _remember_gone(self, version: int, name: str) -> None:
        self._gone.append((version, name))
        while len(self._gone) > GONE_KEPT:
            self._forgotten, _ = self._gone.popleft()
