"""Which of a node's own messages are still on the ring: it takes them off, and nobody else's (ring.md 5.5).

An inbox keeps what it gets, so not all of them come back. A mark behind them tells: the ring keeps messages in order.
"""

from __future__ import annotations

from protos.ring.lru import LruMap


class Copies:
    """Counts by digest, `remembered` of them before the last mark, and as many behind it."""

    __slots__ = ("_before", "_behind", "_remembered")

    def __init__(self, remembered: int) -> None:
        self._remembered = remembered
        self._before: LruMap[int] = LruMap(remembered)
        self._behind: LruMap[int] = LruMap(remembered)

    def __len__(self) -> int:
        return len(self._before) + len(self._behind)

    def has(self, digest: bytes) -> bool:
        return bool(self._before.get(digest) or self._behind.get(digest))

    def put_on(self, digest: bytes) -> None:
        _add(self._behind, digest, 1)

    def take_off(self, digest: bytes) -> bool:
        """Whether a copy is due back: each counts once, the oldest first."""
        for copies in (self._before, self._behind):
            left = copies.pop(digest)
            if left is not None:
                if left > 1:
                    copies.put(digest, left - 1)
                return True
        return False

    def mark(self) -> None:
        """A mark goes behind all of them."""
        for digest, number in self._behind.items():
            _add(self._before, digest, number)
        self._behind = LruMap(self._remembered)

    def mark_came_back(self) -> None:
        """What was before it and has not come back was kept."""
        self._before = LruMap(self._remembered)


def _add(copies: LruMap[int], digest: bytes, number: int) -> None:
    copies.put(digest, (copies.get(digest) or 0) + number)
