"""The last batches of the log, kept in memory: who is only a little behind need not ask the store."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from operator import attrgetter

from services.store.log import Entry, Place

KEPT_BYTES = 4 << 20
ENTRY_BYTES = 700  # what an entry takes beside its block
_place = attrgetter("place")


class RecentEntries:
    def __init__(self) -> None:
        self._batches: deque[tuple[Place, list[Entry], int]] = deque()  # where it begins, what, octets
        self._bytes = 0

    def add(self, entries: list[Entry], since: Place) -> None:
        """since: behind what they follow, which may be in the era before theirs (lua/log.lua)."""
        size = sum([len(entry.block) for entry in entries]) + len(entries) * ENTRY_BYTES
        self._batches.append((since, entries, size))
        self._bytes += size
        while self._bytes > KEPT_BYTES and len(self._batches) > 1:
            self._bytes -= self._batches.popleft()[2]

    def clear(self) -> None:
        self._batches.clear()
        self._bytes = 0

    def after(self, place: Place) -> list[Entry] | None:
        """All entries behind the place; None if it is not among what is kept. Costs as much as it finds."""
        if not self._batches or place < self._batches[0][0]:
            return None
        found: list[list[Entry]] = []
        for _, entries, _ in reversed(self._batches):
            if entries[-1].place <= place:
                break
            whole = entries[0].place > place
            found.append(entries if whole else entries[bisect_right(entries, place, key=_place) :])
        return [entry for entries in reversed(found) for entry in entries]
