"""Remember names of deleted queues for live views."""

from __future__ import annotations

from collections import deque
from collections.abc import Container

KEPT = 5000


class Tombstones:
    """Names of deleted queues, by version."""

    def __init__(self) -> None:
        self.forgotten = 0  # the newest version with a name that was dropped
        self._names: deque[tuple[int, str]] = deque()

    def add(self, version: int, name: str) -> None:
        """Add a name; drop the oldest beyond the limit."""
        self._names.append((version, name))
        while len(self._names) > KEPT:
            self.forgotten, _ = self._names.popleft()

    def since(self, version: int, existing: Container[str]) -> list[str]:
        """Return names deleted after a version that do not exist again."""
        return list(dict.fromkeys(name for at, name in self._names if at > version and name not in existing))
