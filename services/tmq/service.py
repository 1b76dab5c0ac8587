"""What all TMQ connections of a process share: the store, the settings, the counters, and the work on whole queues."""

from __future__ import annotations

from functools import partial

from services.kit.metrics import Metrics, Tally
from services.kit.readiness import Readiness
from services.store import OURSELVES, Client, Delivery, Pipe, Queue, Source, Store
from services.store.background_tasks import Errands
from services.tmq.settings import TmqSettings

OWNER = "edge:tmq"  # of queues that CREATE made: only these may be removed by DELETE


def decode_name(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


class TmqService:
    def __init__(self, settings: TmqSettings, store: Store, metrics: Metrics) -> None:
        self.settings = settings
        self.store = store
        self.metrics = metrics
        self.tally = Tally(metrics)
        self.errands = Errands(settings.request_timeout_s, metrics.local_errors.inc)
        self.readiness = Readiness(store=partial(store.fault_of, settings.create.domain))

    def pipe(self, queue: Queue) -> Pipe:
        return self.store.domain(queue.domain).pipe

    def give_back(self, deliveries: list[Delivery], *, failed: bool, error: str = "") -> None:
        """Messages go back to their places, in nobody's sequence. failed: it counts towards max_deliveries."""
        for d in deliveries:
            self.pipe(d.queue).messages.release(Source(OURSELVES), [d], failed=failed, error=error)

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

    async def close(self) -> None:
        await self.errands.close()
        await self.store.close()
        await self.tally.close()
