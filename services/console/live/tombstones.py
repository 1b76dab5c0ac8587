"""Names of queues that were deleted, for who watches."""

from __future__ import annotations

from collections import deque
from collections.abc import Container

KEPT = 5000


class Gone:
    def __init__(self) -> None:
        self.forgotten = 0  # the newest version of which one is not remembered
        self._names: deque[tuple[int, str]] = deque()

    def add(self, version: int, name: str) -> None:
        self._names.append((version, name))
        while len(self._names) > KEPT:
            self.forgotten, _ = self._names.popleft()

    def since(self, version: int, there: Container[str]) -> list[str]:
        """Those of later versions that are not there again."""
        return list(dict.fromkeys(name for at, name in self._names if at > version and name not in there))
