"""Resources shared by the connections of a process: the store, metrics and background tasks."""

from __future__ import annotations

from functools import partial

from services.kit.metrics import Metrics, Tally
from services.kit.readiness import Readiness
from services.store import INTERNAL_CLIENT, Delivery, Pipe, Queue, Source, Store
from services.store.background_tasks import BackgroundTasks


class QueueService:
    """The shared parts of an edge process. An edge's own service adds its settings."""

    def __init__(self, store: Store, metrics: Metrics, request_timeout_s: float, domain: str) -> None:
        """Take over the store. domain: the process is ready only while it can use this domain."""
        self.store = store
        self.metrics = metrics
        self.tally = Tally(metrics)
        self.background = BackgroundTasks(request_timeout_s, metrics.local_errors.inc)
        self.readiness = Readiness(store=partial(store.fault_of, domain))

    def pipe(self, queue: Queue) -> Pipe:
        """Return the pipe of the queue's domain."""
        return self.store.open_domain(queue.domain).pipe

    def give_back(self, deliveries: list[Delivery], *, failed: bool, error: str = "") -> None:
        """Return messages to their places, in any order. failed: count it towards max_deliveries."""
        for d in deliveries:
            self.pipe(d.queue).messages.release(Source(INTERNAL_CLIENT), [d], failed=failed, error=error)

    async def close(self) -> None:
        """End the background tasks, close the store and write the last counts."""
        await self.background.close()
        await self.store.close()
        await self.tally.close()
