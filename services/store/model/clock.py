"""Compare the store's clock with this machine's; no other module does.

This machine is represented by its boot clock, which is never stepped and includes suspends. Each time that the store
reports bounds the offset between both clocks; a report outside the bounds shows that the store's clock was stepped.
lua/clock.lua compares stored times with the server's present.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from services.store.model.alarms import CLOCK_STEPPED

log = logging.getLogger(__name__)

MS = 1000.0
NS_PER_MS = 1_000_000
DRIFT = 1e-3  # upper bound for the drift between two clocks of which NTP slews one
STEP_MS = 1000.0  # smaller steps are followed silently


def now() -> float:
    """Return seconds of the boot clock, which is monotonic and includes suspends."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wall_offset_ms(store_ms: int, asked_s: float) -> int:
    """Return how far the store's clock is ahead of this machine's wall clock, from an answer requested at `asked_s`."""
    return store_ms - round((_wall_s() + (asked_s + now()) / 2) * MS)


def _wall_s() -> float:
    """Return how far this machine's wall clock is ahead of its boot clock."""
    return time.time() - now()


class Stamps:
    """Ages of time stamps that the kernel takes from this machine's wall clock, which may be stepped."""

    __slots__ = ("_before_s",)

    def __init__(self) -> None:
        self._before_s = _wall_s()

    def age_s(self, stamp_s: float) -> float:
        """Return the age of a stamp by the current clock, or if that is negative by the clock at the last `settle`."""
        ages = [now() + wall_s - stamp_s for wall_s in (_wall_s(), self._before_s)]
        return min((age_s for age_s in ages if age_s >= 0), default=0.0)

    def settle(self) -> None:
        """Adopt the current wall clock: no stamp taken before is still unread."""
        self._before_s = _wall_s()


def _ignore(_reason: str, _number: int) -> None:
    return None


class Clock:
    """The store's clock as estimated by this process; each answer with the store's time refines it."""

    __slots__ = ("_heard_at", "_high", "_low", "_observe", "_valid_from")

    def __init__(self, observe: Callable[[str, int], None] = _ignore) -> None:
        """observe: called with CLOCK_STEPPED and 1 for each step."""
        self._observe = observe
        self._low, self._high = -math.inf, math.inf  # bounds of the store's time minus ours, ms
        self._heard_at = 0.0
        self._valid_from = -math.inf  # answers to earlier requests may predate the last step

    def heard(self, store_ms: int, asked_s: float) -> None:
        """Refine the offset with an answer that just arrived; `asked_s` is when it was requested, by `now`."""
        if asked_s < self._valid_from:
            return
        answered_s = now()
        low, high = store_ms - answered_s * MS, store_ms + 1 - asked_s * MS
        drift = (answered_s - self._heard_at) * DRIFT * MS
        known_low, known_high = self._low - drift, self._high + drift
        if low <= known_high and high >= known_low:
            self._low, self._high = max(low, known_low), min(high, known_high)
        else:
            before, self._low, self._high = self._offset_ms, low, high
            self._valid_from = asked_s
            self._report(self._offset_ms - before)
        self._heard_at = answered_s

    def _report(self, step_ms: float) -> None:
        if abs(step_ms) < STEP_MS:
            return
        self._observe(CLOCK_STEPPED, 1)
        log.warning(
            "the store's clock was stepped %s by %.1f s; deadlines follow it",
            "forward" if step_ms > 0 else "back",
            abs(step_ms) / MS,
            extra={"action": CLOCK_STEPPED, "step_ms": round(step_ms)},
        )

    @property
    def _offset_ms(self) -> float:
        """Return the store's time minus the boot clock; before the first answer, use this machine's wall clock."""
        if math.isinf(self._low):
            return _wall_s() * MS
        return (self._low + self._high) / 2

    def now_ms(self) -> float:
        """Return the store's time, ms since 1970."""
        return now() * MS + self._offset_ms

    def deadline_ms(self, after_ms: float) -> int:
        """Return the latest possible store time `after_ms` from now."""
        offset_ms = self._offset_ms if math.isinf(self._high) else self._high
        return int(now() * MS + offset_ms + after_ms)

    def age_ms(self, then_ms: float) -> float:
        """Return the age of a store time; a future time, recorded before a step back, has age 0."""
        return max(0.0, self.now_ms() - then_ms)

    def wall_ns(self, then_ms: float) -> int:
        """Convert a past store time to this machine's wall clock, ns since 1970."""
        return time.time_ns() - round(self.age_ms(then_ms) * NS_PER_MS)

    def to_ms(self, seconds: float) -> int:
        """Return a time of `now` by the store's clock."""
        return round(seconds * MS + self._offset_ms)

    def to_s(self, ms: int) -> float:
        """Return a time of the store's clock by `now`."""
        return (ms - self._offset_ms) / MS
