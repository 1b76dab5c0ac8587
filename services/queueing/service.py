"""What the connections of a process share: the store, the counters, and the work beside the loop."""

from __future__ import annotations

from functools import partial

from services.kit.metrics import Metrics, Tally
from services.kit.readiness import Readiness
from services.store import INTERNAL_CLIENT, Delivery, Pipe, Queue, Source, Store
from services.store.background_tasks import BackgroundTasks


def decode_name(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


class QueueService:
    """Of one edge. An edge's own service adds its settings."""

    def __init__(self, store: Store, metrics: Metrics, request_timeout_s: float, domain: str) -> None:
        """domain: the one that the process must be able to use to be ready."""
        self.store = store
        self.metrics = metrics
        self.tally = Tally(metrics)
        self.background = BackgroundTasks(request_timeout_s, metrics.local_errors.inc)
        self.readiness = Readiness(store=partial(store.fault_of, domain))

    def pipe(self, queue: Queue) -> Pipe:
        return self.store.open_domain(queue.domain).pipe

    def give_back(self, deliveries: list[Delivery], *, failed: bool, error: str = "") -> None:
        """Return messages to their places, in no connection's order. failed: it counts towards max_deliveries."""
        for d in deliveries:
            self.pipe(d.queue).messages.release(Source(INTERNAL_CLIENT), [d], failed=failed, error=error)

    async def close(self) -> None:
        await self.background.close()
        await self.store.close()
        await self.tally.close()
