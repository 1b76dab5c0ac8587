"""What all TMQ connections of a process share: the store, the settings, the counters, and the work on whole queues."""

from __future__ import annotations

from services.kit.metrics import Metrics
from services.queueing import QueueService
from services.store import Client, Queue, Store
from services.tmq.settings import TmqSettings

OWNER = "edge:tmq"  # of queues that CREATE made: only these may be removed by DELETE


class TmqService(QueueService):
    """`QueueService`, and the requests on whole queues."""

    def __init__(self, settings: TmqSettings, store: Store, metrics: Metrics) -> None:
        super().__init__(store, metrics, settings.request_timeout_s, settings.create.domain)
        self.settings = settings

    async def create(self, name: str) -> bool:
        """CREATE: True if it was made now. Raises StoreError: exists, refused."""
        return await self.settings.create.create(self.store, name, OWNER)

    async def delete(self, name: str) -> bool:
        """DELETE: True if it was removed now. Raises StoreError: unknown."""
        queue = await self.store.catalogue.find(name)
        if queue.owner != OWNER:
            return False
        await self.store.catalogue.delete(queue)
        return True

    async def open(self, name: str, client: Client) -> Queue:
        """OPEN. Raises QueueUnknown, AccessDenied, StoreUnavailable."""
        return (await self.store.catalogue.find(name)).admit(client)
