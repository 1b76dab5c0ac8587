"""Poll the state of the store: its memory, promises and alarms."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from services.store import Store, StoreError
from services.store.model import Promises
from services.store.redis import PUBLISH_LIMIT, Grade, Memory, findings, memory_of

REFRESH_S = 10.0
MAX_NAMED = 10  # queues and servers in alarms; of more queues only the number


class StoreState:
    """The store's state, refreshed every REFRESH_S."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._promises: Promises | None = None
        self._memory = Memory(None, None)
        self._memory_error = ""
        self._polled = float("-inf")

    async def poll(self) -> None:
        """Refresh the state if it is old. Raises StoreError if the store's promises cannot be read."""
        if time.monotonic() - self._polled < REFRESH_S:
            return
        self._promises = await self._store.promises.now()
        try:
            self._memory, self._memory_error = await memory_of(self._store.connector), ""
        except StoreError as error:  # the previous value is kept
            self._memory_error = str(error)
        self._polled = time.monotonic()

    def document(self, unreadable: Mapping[str, str]) -> dict[str, Any]:
        """Return the document of the API; call poll() first. unreadable: reasons by queue."""
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
                *self._memory_full(memory),
                *self._memory_unknown(),
                *_unreadable_documents(unreadable),
            ],
        }

    @staticmethod
    def _findings(promises: Promises) -> list[str]:
        """Return what `penstock doctor` reports as a failure."""
        found = (finding for finding in findings(promises) if finding.grade is Grade.FAIL)
        return [f"{finding.subject}: {finding.found}; {finding.advice}" for finding in found]

    @staticmethod
    def _memory_full(memory: Memory) -> list[str]:
        if not memory.used or not memory.limit or memory.used < PUBLISH_LIMIT * memory.limit:
            return []
        share, limit = round(100 * memory.used / memory.limit), round(100 * PUBLISH_LIMIT)
        return [
            f"memory: {share} % used; above {limit} % publishes are refused: consume messages or raise maxmemory"
        ]

    def _memory_unknown(self) -> list[str]:
        if self._memory_error:
            return [f"memory: cannot be read, the figure is out of date: {self._memory_error}"]
        return [
            f"memory: server {address} does not answer and is not included"
            for address in self._memory.silent[:MAX_NAMED]
        ]


def _unreadable_documents(unreadable: Mapping[str, str]) -> list[str]:
    named = sorted(unreadable)[:MAX_NAMED]
    alarms = [f"{unreadable[name]}; replace it, or use a version that can read it" for name in named]
    more = len(unreadable) - len(named)
    return [*alarms, f"{more} more queues have unreadable documents"] if more else alarms
