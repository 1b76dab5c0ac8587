"""Create, delete and open queues for all TMQ connections of a process."""

from __future__ import annotations

from services.kit.metrics import Metrics
from services.queueing import QueueService
from services.store import Client, Queue, Store
from services.tmq.settings import TmqSettings

OWNER = "edge:tmq"  # owner of queues made by CREATE; DELETE removes only these


class TmqService(QueueService):
    """The store, settings and counters that connections share, and requests on whole queues."""

    def __init__(self, settings: TmqSettings, store: Store, metrics: Metrics) -> None:
        super().__init__(store, metrics, settings.request_timeout_s, settings.create.domain)
        self.settings = settings

    async def create(self, name: str) -> bool:
        """Create a queue. Return False if it is forbidden. Raises StoreError if it exists or is refused."""
        return await self.settings.create.create(self.store, name, OWNER)

    async def delete(self, name: str) -> bool:
        """Delete a queue. Return False if CREATE did not make it. Raises StoreError if it is unknown."""
        queue = await self.store.catalogue.find(name)
        if queue.owner != OWNER:
            return False
        await self.store.catalogue.delete(queue)
        return True

    async def open(self, name: str, client: Client) -> Queue:
        """Return a queue for a client. Raises QueueUnknown, AccessDenied, StoreUnavailable."""
        return (await self.store.catalogue.find(name)).admit(client)
