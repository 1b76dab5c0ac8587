"""How the store itself is: what it is, its memory, and what somebody should look at."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from services.store import Store, StoreError
from services.store.redis import Grade, Memory, Promises, memory_of

AGAIN_S = 10.0  # promises change seldom
MOST_NAMED = 10  # queues, of more only the number is told; servers
FULL = 0.75  # of maxmemory: publishes are refused above it


class StateOfStore:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._promises: Promises | None = None
        self._memory = Memory(None, None)
        self._unmeasured = ""  # why the memory was not looked at, as it should have been
        self._looked = float("-inf")

    async def look(self) -> None:
        """Seldom asks anything. Raises StoreError where the store's promises cannot be read."""
        if time.monotonic() - self._looked < AGAIN_S:
            return
        self._promises = await self._store.promises.now()
        try:
            self._memory, self._unmeasured = await memory_of(self._store.connector), ""
        except StoreError as error:  # what it was is told on, and no queue waits for it
            self._unmeasured = str(error)
        self._looked = time.monotonic()

    def told(self, unreadable: Mapping[str, str]) -> dict[str, Any]:
        """After the first look. unreadable: queues whose documents cannot be read, and why not."""
        promises, memory = self._promises, self._memory
        assert promises is not None
        return {
            "server": promises.server,
            "version": promises.version,
            "usedBytes": memory.used,
            "maxBytes": memory.limit,
            "promises": {
                "levels": promises.levels(),
                "mode": promises.mode,
                "replicas": promises.replicas,
                "fsyncs": promises.fsyncs,
            },
            "alarms": [
                *self._findings(promises),
                *self._of_memory(memory),
                *self._of_silent(),
                *_of_documents(unreadable),
            ],
        }

    @staticmethod
    def _findings(promises: Promises) -> list[str]:
        """What `penstock doctor` would call a failure."""
        found = (finding for finding in promises.findings() if finding.grade is Grade.FAIL)
        return [f"{finding.subject}: {finding.found}; {finding.advice}" for finding in found]

    @staticmethod
    def _of_memory(memory: Memory) -> list[str]:
        if not memory.used or not memory.limit or memory.used < FULL * memory.limit:
            return []
        share = round(100 * memory.used / memory.limit)
        return [
            f"memory: {share} % is used, and above 75 % nothing is put in: take messages out or raise maxmemory"
        ]

    def _of_silent(self) -> list[str]:
        if self._unmeasured:
            return [f"memory: it is told as it was, as nobody says how it is: {self._unmeasured}"]
        return [
            f"memory: {address} does not answer, and is not counted"
            for address in self._memory.silent[:MOST_NAMED]
        ]


def _of_documents(unreadable: Mapping[str, str]) -> list[str]:
    named = sorted(unreadable)[:MOST_NAMED]
    told = [f"{unreadable[name]}; replace it, or use a version that can read it" for name in named]
    more = len(unreadable) - len(named)
    return [*told, f"{more} more queues have documents that cannot be read"] if more else told
