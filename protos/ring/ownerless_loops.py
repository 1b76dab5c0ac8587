"""Find LOOPs that keep circulating because the node that would stop them has left (ring.md 2.3)."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from protos.ring.messages import Leader, LinkBroken

SUSPECT_AT = 3  # passes, each with the TTL lower by the number of nodes
GONE_AT = 4
WITHIN_S = 10.0  # from one pass to the next
MAX_LOOPS = 1000  # remembered; the one that passed longest ago is forgotten


class _Pass(NamedTuple):
    ttl: int
    at: float
    step: int  # decrease of the TTL since the pass before; 0 for the first
    times: int


class CirculationDetector:
    """Remembers how each LOOP passed last. A newly sent LOOP has the same TTL again, or a higher one."""

    __slots__ = ("_passes",)

    def __init__(self) -> None:
        self._passes: OrderedDict[tuple[type, bytes], _Pass] = OrderedDict()

    def count(self, loop: Leader | LinkBroken, now: float) -> int:
        """Return how often a LOOP has come by; at GONE_AT take it off the ring. It is then forgotten."""
        if loop.ttl == 1:
            return GONE_AT  # its TTL ends here
        key = (type(loop), loop.name)
        self._forget_before(now - WITHIN_S)
        last = self._passes.pop(key, None)
        this = _Pass(loop.ttl, now, 0, 1) if last is None else _after(last, loop.ttl, now)
        if this.times < GONE_AT:
            self._passes[key] = this
            if len(self._passes) > MAX_LOOPS:
                self._passes.popitem(last=False)
        return this.times

    def _forget_before(self, time: float) -> None:
        """Remove what passed before `time`; the oldest is first."""
        while self._passes:
            oldest = next(iter(self._passes))  # in a plain dict this would scan all deleted entries
            if self._passes[oldest].at >= time:
                return
            del self._passes[oldest]


def _after(last: _Pass, ttl: int, now: float) -> _Pass:
    step = last.ttl - ttl
    if step <= 0:
        return _Pass(ttl, now, 0, 1)
    return _Pass(ttl, now, step, last.times + 1 if step == last.step else 2)
