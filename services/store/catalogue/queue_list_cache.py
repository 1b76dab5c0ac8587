"""Cache the list of all queues for periodic polls, so that only changed documents are parsed."""

from __future__ import annotations

from services.store.catalogue.registry import Registry
from services.store.model.errors import QueueUnreadable
from services.store.model.queue_document import parse_leniently
from services.store.model.queues import Queue


class QueueListCache:
    """A cached list of all queues. Concurrent refreshes are not supported."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._read: dict[str, tuple[bytes, Queue, str]] = {}
        self.unreadable: dict[str, str] = {}  # by name: why, as of the last refresh

    async def refresh(self) -> list[Queue]:
        """Return the current queues by name, including those with unreadable specs.

        Raises NotInitialised, StoreUnavailable.
        """
        read: dict[str, tuple[bytes, Queue, str]] = {}
        unreadable: dict[str, str] = {}
        async for name, document in self._registry.documents():
            try:
                read[name] = self._found(name, document)
            except QueueUnreadable as error:
                unreadable[name] = str(error)
                continue
            if problem := read[name][2]:  # a newer version may have written it
                unreadable[name] = problem
        self._read, self.unreadable = read, unreadable
        return [read[name][1] for name in sorted(read)]

    def _found(self, name: str, document: bytes) -> tuple[bytes, Queue, str]:
        known = self._read.get(name)
        if known is not None and known[0] == document:
            return known
        return document, *parse_leniently(name, document)
