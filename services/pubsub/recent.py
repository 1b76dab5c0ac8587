"""The last batches of the log, kept in memory: who is only a little behind need not ask the store."""

from __future__ import annotations

from collections import deque

from services.pubsub.fanout import before
from services.store.log import Entry, Place

KEPT_BYTES = 4 << 20


class Recent:
    def __init__(self) -> None:
        self._batches: deque[tuple[Place, list[Entry], int]] = deque()  # where it begins, what, octets
        self._bytes = 0

    def add(self, entries: list[Entry]) -> None:
        size = sum(len(entry.block) for entry in entries)
        self._batches.append((before(entries[0]), entries, size))
        self._bytes += size
        while self._bytes > KEPT_BYTES and len(self._batches) > 1:
            self._bytes -= self._batches.popleft()[2]

    def clear(self) -> None:
        self._batches.clear()
        self._bytes = 0

    def after(self, place: Place) -> list[Entry] | None:
        """All entries behind the place; None if it is not among what is kept."""
        if not self._batches or place < self._batches[0][0]:
            return None
        return [entry for _, entries, _ in self._batches for entry in entries if entry.place > place]
