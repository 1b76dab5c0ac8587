"""The store's clock beside this machine's: every comparison of the two is made here.

Times of this machine are of its boot clock, which is never stepped and counts suspends. What the store says of its wall
clock bounds the offset between the two; an answer outside the bounds shows that the store's clock was stepped. Lua has
its own half, lua/clock.lua: what compares kept times with the server's present.
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
DRIFT = 1e-3  # more than two clocks drift apart, one of them slewed by NTP
STEP_MS = 1000.0  # smaller steps are followed, and not reported


def now() -> float:
    """Return seconds of the boot clock: monotonic, and it goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wall_offset_ms(told_ms: int, asked_s: float) -> int:
    """Return how far the store's clock is ahead of this machine's wall clock, by an answer asked for at `asked_s`."""
    return told_ms - round((_wall_s() + (asked_s + now()) / 2) * MS)


def _wall_s() -> float:
    """Return how far this machine's wall clock is ahead of its boot clock."""
    return time.time() - now()


class Stamps:
    """Ages of what the kernel stamps by this machine's wall clock, which may be stepped meanwhile."""

    __slots__ = ("_before_s",)

    def __init__(self) -> None:
        self._before_s = _wall_s()

    def age_s(self, stamp_s: float) -> float:
        """Return how long ago that was: by the clock as it is, or as it was at `settle`, whichever is possible."""
        ages = [now() + wall_s - stamp_s for wall_s in (_wall_s(), self._before_s)]
        return min((age_s for age_s in ages if age_s >= 0), default=0.0)

    def settle(self) -> None:
        """Nothing that was stamped before is still to be read."""
        self._before_s = _wall_s()


def _ignore(_reason: str, _number: int) -> None:
    return None


class Clock:
    """The store's clock as this process knows it. Every answer that tells the store's time renews it."""

    __slots__ = ("_heard_at", "_high", "_low", "_observe", "_valid_from")

    def __init__(self, observe: Callable[[str, int], None] = _ignore) -> None:
        """observe: counts steps, as CLOCK_STEPPED."""
        self._observe = observe
        self._low, self._high = -math.inf, math.inf  # bounds of the store's time less ours, ms
        self._heard_at = 0.0
        self._valid_from = -math.inf  # older questions may have been answered before the last step

    def heard(self, told_ms: int, asked_s: float) -> None:
        """Renew the offset: a question asked at `asked_s`, by `now`, is answered now with the store's time."""
        if asked_s < self._valid_from:
            return
        answered_s = now()
        low, high = told_ms - answered_s * MS, told_ms + 1 - asked_s * MS
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
        """Before the first answer that of this machine's wall clock."""
        if math.isinf(self._low):
            return _wall_s() * MS
        return (self._low + self._high) / 2

    def now_ms(self) -> float:
        """Return the store's time, ms since 1970."""
        return now() * MS + self._offset_ms

    def deadline_ms(self, after_ms: float) -> int:
        """Return the store's time so long after now, not earlier than it may be."""
        offset_ms = self._offset_ms if math.isinf(self._high) else self._high
        return int(now() * MS + offset_ms + after_ms)

    def age_ms(self, then_ms: float) -> float:
        """Return how long ago that time of the store's was; one still to come, noted before a step back, is now."""
        return max(0.0, self.now_ms() - then_ms)

    def wall_ns(self, then_ms: float) -> int:
        """Return a past time of the store's by this machine's wall clock, ns since 1970."""
        return time.time_ns() - round(self.age_ms(then_ms) * NS_PER_MS)

    def to_ms(self, seconds: float) -> int:
        """Return a time of `now` by the store's clock."""
        return round(seconds * MS + self._offset_ms)

    def to_s(self, ms: int) -> float:
        """Return a time of the store's clock by `now`."""
        return (ms - self._offset_ms) / MS
