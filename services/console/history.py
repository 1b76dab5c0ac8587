"""What happened to queues lately, out of the samples that edges leave in the store. Read when somebody wants to know,
and kept for whoever asks next; never more than so many."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from typing import Any

from services.console.moments import moment
from services.console.series import Kept, Series, parse
from services.store import Queue, Store
from services.store.following import Following, Sampled

MOST_MINUTES = 180
STEP_MS, LONG_STEP_MS = 10_000, 30_000
SHORT_MINUTES = 60  # up to which steps are short
MOST_KEPT = 200_000  # samples of a domain, some 60 MB
TOLD_LATE_MS = 12_000  # what was done is told up to so much later
FORGOTTEN_S = 600.0  # after the last question; reading on from there might take longer than to begin anew


class History:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._domains: dict[str, _Domain] = {}

    async def of(self, queue: Queue, minutes: int) -> dict[str, Any]:
        """Raises StoreError."""
        now_ms = await self._store.now_ms()
        domain = self._domain(queue.domain)
        await domain.catch_up()
        step_ms = STEP_MS if minutes <= SHORT_MINUTES else LONG_STEP_MS
        end_ms = (now_ms - TOLD_LATE_MS) // step_ms * step_ms
        count = minutes * 60_000 // step_ms
        series = Series(end_ms - count * step_ms, step_ms, count, domain.known_ms)
        series.add(domain.of(queue.name))
        return {"stepMs": step_ms, "from": moment(series.start_ms), "series": series.told()}

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
            self.known_ms = sample.at_ms
        found = parse(sample)
        if found is None or self._is_repeat(sample):
            return
        name, kept = found
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
