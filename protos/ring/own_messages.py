"""Track which of a node's own messages are still on the ring: only their sender takes them off (ring.md 5.5).

An inbox may keep a message, so not all come back. A mark behind them tells: the ring keeps messages in order.
"""

from __future__ import annotations

from protos.ring.lru import LruMap


class Copies:
    """Counts of messages by digest: `remembered` before the last mark, and as many behind it."""

    __slots__ = ("_before", "_behind", "_remembered")

    def __init__(self, remembered: int) -> None:
        self._remembered = remembered
        self._before: LruMap[int] = LruMap(remembered)
        self._behind: LruMap[int] = LruMap(remembered)

    def __len__(self) -> int:
        return len(self._before) + len(self._behind)

    def has(self, digest: bytes) -> bool:
        """Return whether a copy is still on the ring."""
        return bool(self._before.get(digest) or self._behind.get(digest))

    def put_on(self, digest: bytes) -> None:
        """Count a copy that this node begins."""
        _add(self._behind, digest, 1)

    def take_off(self, digest: bytes) -> bool:
        """Return whether a copy was due back, and count it off, those before the mark first."""
        for copies in (self._before, self._behind):
            left = copies.pop(digest)
            if left is not None:
                if left > 1:
                    copies.put(digest, left - 1)
                return True
        return False

    def mark(self) -> None:
        """Note that a mark follows all copies counted so far."""
        for digest, number in self._behind.items():
            _add(self._before, digest, number)
        self._behind = LruMap(self._remembered)

    def mark_came_back(self) -> None:
        """Forget the copies before the mark: those that have not come back were kept."""
        self._before = LruMap(self._remembered)


def _add(copies: LruMap[int], digest: bytes, number: int) -> None:
    copies.put(digest, (copies.get(digest) or 0) + number)
