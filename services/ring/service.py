"""What the parts of the ring edge share in a process: the store, the settings, the counters, work beside the loop."""

from __future__ import annotations

from functools import partial

from services.kit.metrics import Metrics, Tally
from services.kit.readiness import Readiness
from services.ring.asking import Asker
from services.ring.settings import RingSettings
from services.store import OURSELVES, Delivery, Pipe, Queue, Source, Store
from services.store.background_tasks import Errands
from services.store.model import NODE_OWNER

OWNER = NODE_OWNER  # of queues that create_queue made: only these may be removed by destroy_queue


def decode_name(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


class RingService:
    def __init__(self, settings: RingSettings, store: Store, metrics: Metrics) -> None:
        self.settings = settings
        self.store = store
        self.metrics = metrics
        self.tally = Tally(metrics)
        self.errands = Errands(settings.request_timeout_s, metrics.local_errors.inc)
        self.readiness = Readiness(store=partial(store.fault_of, settings.clients.create.domain))
        self.asker: Asker | None = None  # the node, if this process is one

    def pipe(self, queue: Queue) -> Pipe:
        return self.store.domain(queue.domain).pipe

    def give_back(self, deliveries: list[Delivery], *, failed: bool, error: str = "") -> None:
        """Messages go back to their places, in nobody's sequence. failed: it counts towards max_deliveries."""
        for d in deliveries:
            self.pipe(d.queue).messages.release(Source(OURSELVES), [d], failed=failed, error=error)

    async def close(self) -> None:
        await self.errands.close()
        await self.store.close()
        await self.tally.close()
