"""Finds LOOPs that go round because the node that would stop them is gone (ring.md 2.3)."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from protos.ring.messages import Leader, LinkBroken

SUSPECT_AT = 3  # passes, each with so much less TTL than the one before as the ring has nodes
GONE_AT = 4
WITHIN_S = 10.0  # from one pass to the next
MAX_LOOPS = 1000  # that are remembered; what passed longest ago is forgotten, and begins anew


class _Pass(NamedTuple):
    ttl: int
    at: float
    step: int  # how much less TTL it had than the one before; 0 for the first
    times: int


class CirculationDetector:
    """Remembers how each LOOP passed last. What is sent anew has come no further, what another node sends otherwise."""

    __slots__ = ("_passes",)

    def __init__(self) -> None:
        self._passes: OrderedDict[tuple[type, bytes], _Pass] = OrderedDict()

    def passes(self, loop: Leader | LinkBroken, now: float) -> int:
        """How often `loop`, which has just come, has come by; at GONE_AT it is to be taken off, and forgotten."""
        if loop.ttl == 1:
            return GONE_AT  # it has come as far as it may
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
        """The oldest is first: what passes again is put last."""
        while self._passes:
            oldest = next(iter(self._passes))  # of a plain dict this passes over all that was deleted
            if self._passes[oldest].at >= time:
                return
            del self._passes[oldest]


def _after(last: _Pass, ttl: int, now: float) -> _Pass:
    step = last.ttl - ttl
    if step <= 0:
        return _Pass(ttl, now, 0, 1)
    return _Pass(ttl, now, step, last.times + 1 if step == last.step else 2)
