"""Find tails that wait in vain because the only free head is an original's that will not connect (ring.md 3.8)."""

from __future__ import annotations

from collections import OrderedDict

from protos.ring.table import is_due
from protos.ring.times import Times

SPREAD = 32  # different times at which nodes act, by their names: mostly one does
MAX_WAITING = 1000  # nodes remembered, without the one heard longest ago


class StarvedTails:
    """When each open node was heard. Times in the caller's seconds."""

    __slots__ = ("_due", "_first", "_newest", "_spread_s", "_times")

    def __init__(self, me: bytes, times: Times) -> None:
        self._times = times
        self._spread_s = times.open_s * (sum(me) % SPREAD) / SPREAD
        self._first: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # first and last OPEN by node
        self._newest = 0.0  # when the newest node was first heard
        self._due: float | None = None

    def heard(self, node: bytes, now: float) -> None:
        """Note an OPEN of `node`."""
        first, last = self._first.pop(node, (None, now))
        if first is None or now - last > 3.5 * self._times.open_s:
            first = self._newest = now  # it had a predecessor in between; or three of its OPENs were lost
            self._due = None
        self._first[node] = (first, now)
        if len(self._first) > MAX_WAITING:
            self._first.popitem(last=False)
        if self._due is None and now - self._newest >= self._times.vain_s:
            self._due = now + self._spread_s

    def clear(self) -> None:
        """Forget all nodes."""
        self._first.clear()
        self._due = None

    def deadline(self) -> float | None:
        """Return when `is_due` is due."""
        return self._due

    def is_due(self, now: float) -> bool:
        """Return once that the ring must be opened for a waiting tail."""
        if not is_due(self._due, now):
            return False
        self.clear()
        return True
