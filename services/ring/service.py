"""The state that the parts of the ring edge share in a process."""

from __future__ import annotations

from services.kit.metrics import Metrics
from services.queueing import QueueService
from services.ring.remote_queues import RemoteQueues
from services.ring.settings import RingSettings
from services.store import Store
from services.store.model import NODE_OWNER

OWNER = NODE_OWNER  # of queues made by create_queue: destroy_queue removes only these


class RingService(QueueService):
    """A `QueueService` that can also reach queues of other nodes."""

    def __init__(self, settings: RingSettings, store: Store, metrics: Metrics) -> None:
        super().__init__(store, metrics, settings.request_timeout_s, settings.clients.create.domain)
        self.settings = settings
        self.remote_queues: RemoteQueues | None = None  # set if this process runs a node
