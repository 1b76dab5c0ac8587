"""All queues of a store, for whoever looks at all of them again and again: only what changed is read anew."""

from __future__ import annotations

from services.store.errors import StoreFault
from services.store.queues import Queue
from services.store.registry import Registry


class Roll:
    """Not to be looked at by two at once."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._read: dict[str, tuple[bytes, Queue]] = {}
        self.unreadable: dict[str, str] = {}  # name -> why, as of the last look

    async def look(self) -> list[Queue]:
        """Those that there are now, by name. Raises NotInitialised, StoreUnavailable."""
        before, self._read = self._read, {}
        self.unreadable = {}
        async for name, document in self._registry.documents():
            known = before.get(name)
            if known is not None and known[0] == document:
                self._read[name] = known
                continue
            try:
                self._read[name] = document, self._registry.parse(name, document)
            except StoreFault as error:  # a newer version may have written it
                self.unreadable[name] = str(error)
        return [self._read[name][1] for name in sorted(self._read)]
