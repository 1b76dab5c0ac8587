"""Build time series of queues from the samples that edges write to the store."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any

from services.console.contract.moments import moment
from services.console.history.sample_history import MAX_KEPT, MAX_MINUTES, SampleHistory
from services.console.history.series import DEPTH_LASTS_MS, Series
from services.console.history.totals import Totals
from services.store import Queue, Store

STEPS_MS = (10_000, 30_000, 60_000, 240_000)  # samples come every 10 s
MAX_STEPS = 360
DELAY_MS = 12_000  # samples are written up to so much later
BATCH = 500  # samples, some 5 ms, before yielding to other tasks


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a time series. `now_ms`: by the store's clock."""

    start_ms: int
    step_ms: int
    count: int
    now_ms: int

    def document(self, series: dict[str, list[Any]], *, complete: bool, behind_ms: float) -> dict[str, Any]:
        """Return the document of the API. behind_ms: the last so many ms are incomplete, and become null."""
        end_ms = self.start_ms + self.count * self.step_ms
        unread = (end_ms - (self.now_ms - DELAY_MS - behind_ms)) / self.step_ms
        if complete or unread <= 0:
            return self._document(series, complete)
        known = max(self.count - math.ceil(min(unread, self.count)), 0)
        cut = {name: values[:known] + [None] * (self.count - known) for name, values in series.items()}
        return self._document(cut, complete)

    def _document(self, series: dict[str, list[Any]], complete: bool) -> dict[str, Any]:
        return {
            "stepMs": self.step_ms,
            "from": moment(self.start_ms),
            "complete": complete,
            "series": series,
        }


class History:
    """Readers of samples by domain, created on request. Call `close` at the end."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._domains: dict[str, SampleHistory] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Stop reading samples."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def of(self, queue: Queue, minutes: int) -> dict[str, Any]:
        """Return the time series of a queue. Raises StoreError."""
        domain = self._reader(queue.domain)
        is_complete = await domain.catch_up()
        steps = await self._steps(minutes)
        series = Series(steps.start_ms, steps.step_ms, steps.count, domain.known_ms)
        lowest_ms, behind_ms = steps.start_ms - DEPTH_LASTS_MS, domain.behind_ms
        kept = [each for each in domain.of(queue.name) if each.at_ms > lowest_ms]
        for at in range(0, len(kept), BATCH):
            series.add(kept[at : at + BATCH])
            await asyncio.sleep(0)
        return steps.document(series.values(), complete=is_complete, behind_ms=behind_ms)

    async def of_all(self, minutes: int) -> dict[str, Any]:
        """Return the rates of all queues together; None where those of a domain are unknown. Raises StoreError."""
        domains = [self._reader(name) for name in await self._store.registry.domains()]
        are_complete = await asyncio.gather(*(each.catch_up() for each in domains))
        steps = await self._steps(minutes)
        totals = [domain.totals for domain in domains]
        rates = Totals.rates(totals, steps.start_ms, steps.step_ms, steps.count)
        behind_ms = max((domain.behind_ms for domain in domains), default=0.0)
        return steps.document(rates, complete=all(are_complete), behind_ms=behind_ms)

    async def _steps(self, minutes: int) -> Steps:
        step_ms = next(each for each in STEPS_MS if minutes * 60_000 // each <= MAX_STEPS)
        now_ms = await self._store.now_ms()
        end_ms = (now_ms - DELAY_MS) // step_ms * step_ms
        count = minutes * 60_000 // step_ms or 1
        return Steps(end_ms - count * step_ms, step_ms, count, now_ms)

    def _reader(self, name: str) -> SampleHistory:
        found = self._domains.get(name)
        if found is None:
            following = self._store.following(name, MAX_MINUTES * 60_000, MAX_KEPT // 2)
            found = self._domains[name] = SampleHistory(following)
            task = asyncio.create_task(self._follow(name, found), name=f"console samples of {name!r}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return found

    async def _follow(self, name: str, domain: SampleHistory) -> None:
        await domain.follow()
        del self._domains[name]
