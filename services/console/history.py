"""What happened to queues lately, out of the samples that edges leave in the store. Read when somebody wants to know,
and kept for whoever asks next; never more than so many."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from typing import Any

from services.console.moments import moment
from services.console.series import Flow, Kept, Series, parse
from services.console.totals import Totals
from services.store import Queue, Store
from services.store.following import Following, Sampled

MOST_MINUTES = 1440
STEPS_MS = (10_000, 30_000, 60_000, 240_000)  # samples come every 10 s
MOST_STEPS = 360
MOST_KEPT = 200_000  # samples of a domain, some 60 MB
TOLD_LATE_MS = 12_000  # what was done is told up to so much later
FORGOTTEN_S = 600.0  # after the last question; reading on from there might take longer than to begin anew


class History:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._domains: dict[str, _Domain] = {}

    async def of(self, queue: Queue, minutes: int) -> dict[str, Any]:
        """Raises StoreError."""
        domain = await self._followed(queue.domain)
        start_ms, step_ms, count = await self._steps(minutes)
        series = Series(start_ms, step_ms, count, domain.known_ms)
        series.add(domain.of(queue.name))
        return {"stepMs": step_ms, "from": moment(start_ms), "series": series.told()}

    async def of_all(self, minutes: int) -> dict[str, Any]:
        """What was done with all queues together; None where that of some domain is not known. Raises StoreError."""
        domains = [await self._followed(name) for name in await self._store.registry.domains()]
        start_ms, step_ms, count = await self._steps(minutes)
        told = Totals.told([domain.totals for domain in domains], start_ms, step_ms, count)
        return {"stepMs": step_ms, "from": moment(start_ms), "series": told}

    async def _steps(self, minutes: int) -> tuple[int, int, int]:
        """Where they begin, how long each is, both in ms, and how many they are."""
        step_ms = next(each for each in STEPS_MS if minutes * 60_000 // each <= MOST_STEPS)
        end_ms = (await self._store.now_ms() - TOLD_LATE_MS) // step_ms * step_ms
        count = minutes * 60_000 // step_ms or 1
        return end_ms - count * step_ms, step_ms, count

    async def _followed(self, name: str) -> _Domain:
        domain = self._domain(name)
        await domain.catch_up()
        return domain

    def _domain(self, name: str) -> _Domain:
        found = self._domains.get(name)
        if found is None or time.monotonic() - found.asked > FORGOTTEN_S:
            following = self._store.following(name, MOST_MINUTES * 60_000, MOST_KEPT // 2)
            found = self._domains[name] = _Domain(following)
        return found


class _Domain:
    def __init__(self, following: Following) -> None:
        self.asked = time.monotonic()
        self.known_ms = 0  # from when on all is known
        self.totals = Totals(MOST_MINUTES * 60_000)
        self._following = following
        self._kept: dict[str, deque[Kept]] = defaultdict(deque)
        self._order: deque[str] = deque()  # whose the samples are, the oldest first
        self._last: dict[
            tuple[str, str], int
        ] = {}  # (process, queue) -> serial of the look that was told last
        self._lock = asyncio.Lock()

    async def catch_up(self) -> None:
        self.asked = time.monotonic()
        async with self._lock:
            async for page in self._following.pages():
                for sample in page:
                    self._keep(sample)

    def of(self, name: str) -> list[Kept]:
        return list(self._kept.get(name, ()))

    def _keep(self, sample: Sampled) -> None:
        if not self.known_ms:
            self.known_ms = self.totals.known_ms = sample.at_ms
        found = parse(sample)
        if found is None or self._is_repeat(sample):
            return
        name, kept = found
        if isinstance(kept, Flow):
            self.totals.add(kept)
        self._kept[name].append(kept)
        self._order.append(name)
        if len(self._order) > MOST_KEPT:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        name = self._order.popleft()
        kept = self._kept[name]
        self.known_ms = max(self.known_ms, kept.popleft().at_ms)
        if not kept:
            del self._kept[name]

    def _is_repeat(self, sample: Sampled) -> bool:
        """A sample whose answer was lost is written again."""
        told = sample.fields
        process = told.get("process")
        if process is None:
            return False
        key, serial = (process, told.get("queue", "")), told.get("n", "")
        if not serial.isdigit():
            return False
        is_repeat = self._last.get(key, 0) >= int(serial)
        if len(self._last) > MOST_KEPT:
            self._last.clear()
        self._last[key] = max(self._last.get(key, 0), int(serial))
        return is_repeat
