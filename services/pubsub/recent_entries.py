"""Keep the last batches of the log in memory, so that consumers only a little behind need not read from the store."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from operator import attrgetter

from services.store.log import Entry, Place

KEPT_BYTES = 4 << 20
ENTRY_BYTES = 700  # memory of an entry in addition to its block
_place = attrgetter("place")


class RecentEntries:
    """The last batches of the log, without gaps."""

    def __init__(self) -> None:
        self._batches: deque[tuple[Place, list[Entry], int]] = deque()  # where it begins, entries, octets
        self._bytes = 0

    def add(self, entries: list[Entry], since: Place) -> None:
        """Add a batch. since: the place before it, which may be in an earlier era (lua/log.lua)."""
        size = sum([len(entry.block) for entry in entries]) + len(entries) * ENTRY_BYTES
        self._batches.append((since, entries, size))
        self._bytes += size
        while self._bytes > KEPT_BYTES and len(self._batches) > 1:
            self._bytes -= self._batches.popleft()[2]

    def clear(self) -> None:
        """Forget all batches, as the next one does not follow them."""
        self._batches.clear()
        self._bytes = 0

    def after(self, place: Place) -> list[Entry] | None:
        """Return all entries after the place; None if some are no longer kept. The cost is that of the result."""
        if not self._batches or place < self._batches[0][0]:
            return None
        found: list[list[Entry]] = []
        for _, entries, _ in reversed(self._batches):
            if entries[-1].place <= place:
                break
            whole = entries[0].place > place
            found.append(entries if whole else entries[bisect_right(entries, place, key=_place) :])
        return [entry for entries in reversed(found) for entry in entries]
