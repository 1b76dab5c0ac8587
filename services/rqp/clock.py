"""The store's clock beside this machine's: what is kept with a message is in the first, RQP/cast goes by the second."""

from __future__ import annotations

import time

from services.store import Store

AGAIN_S = 60.0  # the two drift apart: the difference is looked at this often


def now() -> float:
    """Seconds since this machine was started, with those in which it slept: receivers forget ids meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class StoreClock:
    """Milliseconds since 1970 of the store, so that all replicas agree, whatever their machines' clocks say."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._offset_ms = 0.0
        self._looked_at: float | None = None

    async def look(self) -> None:
        """Once before anything else, then now and then. Raises StoreError."""
        if self._looked_at is not None and now() - self._looked_at < AGAIN_S:
            return
        asked = now()
        told_ms = await self._store.now_ms()
        self._looked_at = now()
        self._offset_ms = told_ms - (asked + self._looked_at) * 500

    def now_ms(self) -> int:
        return round(now() * 1000 + self._offset_ms)

    def to_ms(self, seconds: float | None) -> int | None:
        """A time of this machine's clock as the store has it."""
        return None if seconds is None else round(seconds * 1000 + self._offset_ms)

    def to_s(self, ms: int | None) -> float | None:
        """A time of the store's clock as this machine has it."""
        return None if ms is None else (ms - self._offset_ms) / 1000
