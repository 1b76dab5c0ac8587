"""Bound the memory that all connections together hold for unfinished input or unread output."""

from __future__ import annotations

from collections.abc import Callable

Evict = Callable[[], None]  # drops everything that its holder holds, by `Budget.hold(evict, 0)`


class Budget:
    """A limit on a sum of bytes: when the sum exceeds it, the largest holders are evicted.

    Many small senders are therefore never closed because of a few that begin large messages and do not finish them.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.total = 0
        self._held: dict[Evict, int] = {}  # a holder is known by its method that evicts it

    def hold(self, evict: Evict, size: int) -> None:
        """Set the number of bytes held by one holder. May evict this holder or others."""
        self.total += size - self._held.get(evict, 0)
        if size:
            self._held[evict] = size
        else:
            self._held.pop(evict, None)
        while self.total > self.max_bytes:
            max(self._held, key=self._held.__getitem__)()
