"""The memory that all connections together may hold: of their peers' unfinished input, of output nobody reads."""

from __future__ import annotations

from typing import Protocol


class Holder(Protocol):
    """Something that holds memory and can be told to let go of it."""

    def evict(self) -> None:
        """Give everything back now, by `Budget.hold(self, 0)`."""


class Budget:
    """When the sum passes the limit, whoever holds most has to go.

    So many small senders are never closed for the sake of a few that open large messages and do not end them.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.total = 0
        self._held: dict[Holder, int] = {}

    def hold(self, holder: Holder, size: int) -> None:
        """`holder` now holds `size` bytes in all."""
        self.total += size - self._held.get(holder, 0)
        if size:
            self._held[holder] = size
        else:
            self._held.pop(holder, None)
        while self.total > self.max_bytes:
            max(self._held, key=self._held.__getitem__).evict()
