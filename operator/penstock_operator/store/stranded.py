"""Count messages stranded in the queues of ring nodes that were removed or renamed.

A node's unsent messages wait in a queue under its name, and only a node of that name sends them (docs/operations.md,
Nodes that go). A running node owns its queue, also while it waits for its ring.
"""

from __future__ import annotations

import asyncio
import contextlib

from penstock_operator.metrics.metrics import Metrics
from services.store import Store, StoreError
from services.store.model import PREFIX, QueueUnknown, StoreFault, is_of_node


class Stranded:
    """The gauge of stranded messages."""

    def __init__(self, store: Store, metrics: Metrics, interval_s: float) -> None:
        self._store = store
        self._gauge = metrics.ring_stranded
        self._interval_s = interval_s

    async def run(self) -> None:
        """Update the gauge until cancelled."""
        while True:
            with contextlib.suppress(StoreError):  # the gauge keeps its values until the store is back
                self._set(await self._poll())
            await asyncio.sleep(self._interval_s)

    async def _poll(self) -> dict[str, int]:
        """Return the stranded messages by queue. Raises StoreError."""
        found = {}
        async for queue in self._store.listing.queues(PREFIX):
            if not is_of_node(queue.name, queue.owner):
                continue
            # a damaged queue does not hide others; PenstockQueuesUnseen reports it
            with contextlib.suppress(QueueUnknown, StoreFault):
                stats = await self._store.listing.stats(queue)
                if not stats["owned_by"] and (waiting := stats["ready"] + stats["in_flight"]):
                    found[queue.name] = waiting
        return found

    def _set(self, found: dict[str, int]) -> None:
        self._gauge.clear()
        for name, waiting in found.items():
            self._gauge.labels(name).set(waiting)
