"""What happened to queues lately, out of the samples that edges leave in the store (followed.py)."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any

from services.console.contract.moments import moment
from services.console.history.followed import MOST_KEPT, MOST_MINUTES, Followed
from services.console.history.series import DEPTH_LASTS_MS, Series
from services.console.history.totals import Totals
from services.store import Queue, Store

STEPS_MS = (10_000, 30_000, 60_000, 240_000)  # samples come every 10 s
MOST_STEPS = 360
TOLD_LATE_MS = 12_000  # what was done is told up to so much later
STRETCH = 500  # samples in a row that are added up, some 5 ms


@dataclass(frozen=True, slots=True)
class Steps:
    """What is asked for. `now_ms`: by the store's clock."""

    start_ms: int
    step_ms: int
    count: int
    now_ms: int

    def told(self, series: dict[str, list[Any]], *, complete: bool, behind_ms: float) -> dict[str, Any]:
        """behind_ms: of what came in the last so many ms perhaps not all was read; so the steps then are not known."""
        end_ms = self.start_ms + self.count * self.step_ms
        unread = (end_ms - (self.now_ms - TOLD_LATE_MS - behind_ms)) / self.step_ms
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
    """`close` at the end."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._domains: dict[str, Followed] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def of(self, queue: Queue, minutes: int) -> dict[str, Any]:
        """Raises StoreError."""
        domain = self._followed(queue.domain)
        is_whole = await domain.catch_up()
        steps = await self._steps(minutes)
        series = Series(steps.start_ms, steps.step_ms, steps.count, domain.known_ms)
        lowest_ms, behind_ms = steps.start_ms - DEPTH_LASTS_MS, domain.behind_ms
        kept = [each for each in domain.of(queue.name) if each.at_ms > lowest_ms]
        for at in range(0, len(kept), STRETCH):
            series.add(kept[at : at + STRETCH])
            await asyncio.sleep(0)
        return steps.told(series.told(), complete=is_whole, behind_ms=behind_ms)

    async def of_all(self, minutes: int) -> dict[str, Any]:
        """What was done with all queues together; None where that of some domain is not known. Raises StoreError."""
        domains = [self._followed(name) for name in await self._store.registry.domains()]
        are_whole = await asyncio.gather(*(each.catch_up() for each in domains))
        steps = await self._steps(minutes)
        totals = [domain.totals for domain in domains]
        told = Totals.told(totals, steps.start_ms, steps.step_ms, steps.count)
        behind_ms = max((domain.behind_ms for domain in domains), default=0.0)
        return steps.told(told, complete=all(are_whole), behind_ms=behind_ms)

    async def _steps(self, minutes: int) -> Steps:
        step_ms = next(each for each in STEPS_MS if minutes * 60_000 // each <= MOST_STEPS)
        now_ms = await self._store.now_ms()
        end_ms = (now_ms - TOLD_LATE_MS) // step_ms * step_ms
        count = minutes * 60_000 // step_ms or 1
        return Steps(end_ms - count * step_ms, step_ms, count, now_ms)

    def _followed(self, name: str) -> Followed:
        found = self._domains.get(name)
        if found is None:
            following = self._store.following(name, MOST_MINUTES * 60_000, MOST_KEPT // 2)
            found = self._domains[name] = Followed(following)
            task = asyncio.create_task(self._follow(name, found), name=f"console samples of {name!r}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return found

    async def _follow(self, name: str, domain: Followed) -> None:
        await domain.follow()
        del self._domains[name]
