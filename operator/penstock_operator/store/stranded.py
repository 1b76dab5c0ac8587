"""Messages that nobody sends around a ring: what a node left that is gone, or has another name now.

What a node has to send waits in a queue under its name, and only a node of that name sends it (docs/operations.md,
Nodes that go). A node that is there owns its queue, also while it waits for its ring.
"""

from __future__ import annotations

import asyncio
import contextlib

from penstock_operator.metrics.metrics import Metrics
from services.store import Store, StoreError
from services.store.model import PREFIX, QueueUnknown, StoreFault, is_of_node


class Stranded:
    def __init__(self, store: Store, metrics: Metrics, interval_s: float) -> None:
        self._store = store
        self._gauge = metrics.ring_stranded
        self._interval_s = interval_s

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            with contextlib.suppress(StoreError):  # what was told holds until somebody can look again
                self._tell(await self._look())
            await asyncio.sleep(self._interval_s)

    async def _look(self) -> dict[str, int]:
        """Messages by queue. Raises StoreError."""
        found = {}
        async for queue in self._store.listing.queues(PREFIX):
            if not is_of_node(queue.name, queue.owner):
                continue
            # deleted meanwhile, or damaged, which PenstockQueuesUnseen tells: it hides no other
            with contextlib.suppress(QueueUnknown, StoreFault):
                stats = await self._store.listing.stats(queue)
                if not stats["owned_by"] and (waiting := stats["ready"] + stats["in_flight"]):
                    found[queue.name] = waiting
        return found

    def _tell(self, found: dict[str, int]) -> None:
        self._gauge.clear()
        for name, waiting in found.items():
            self._gauge.labels(name).set(waiting)
