"""What the parts of the ring edge share in a process: the store, the settings, the counters, work beside the loop."""

from __future__ import annotations

from services.kit.metrics import Metrics
from services.queueing import QueueService
from services.ring.asking import Asker
from services.ring.settings import RingSettings
from services.store import Store
from services.store.model import NODE_OWNER

OWNER = NODE_OWNER  # of queues that create_queue made: only these may be removed by destroy_queue


class RingService(QueueService):
    """`QueueService`, and the way around the ring."""

    def __init__(self, settings: RingSettings, store: Store, metrics: Metrics) -> None:
        super().__init__(store, metrics, settings.request_timeout_s, settings.clients.create.domain)
        self.settings = settings
        self.asker: Asker | None = None  # the node, if this process is one
