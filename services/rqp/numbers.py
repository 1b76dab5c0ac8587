"""Queues by the numbers that a protocol knows them by: `bindings.rqpMca.queueId`, `bindings.rqpCast.key`."""

from __future__ import annotations

from services.store import Queue, Store
from services.store.registry import EVERYTHING


class Numbers:
    """What one process was asked for lately. A queue whose document changes, or that goes, is looked for anew."""

    def __init__(self, store: Store, protocol: str) -> None:
        """protocol: as the store writes it, 'rqp-mca' or 'rqp-cast'."""
        self._store = store
        self._protocol = protocol
        self._known: dict[int, Queue] = {}
        store.watch(self._changed)

    def known(self, number: int) -> Queue | None:
        """The queue, if it was found lately: without a question to the store."""
        return self._known.get(number)

    async def find(self, number: int) -> Queue:
        """Raises QueueUnknown, StoreUnavailable."""
        queue = await self._store.numbered(self._protocol, number)
        self._known[number] = queue
        return queue

    def forget(self, queue: Queue) -> None:
        """The store says that it is gone."""
        self._changed(queue.name)

    def _changed(self, name: str) -> None:
        stale = [number for number, queue in self._known.items() if name in (queue.name, EVERYTHING)]
        for number in stale:
            del self._known[number]
