"""Hold what all connections of the receiving MCA share (rqp_mca.md 2)."""

from __future__ import annotations

from collections.abc import Callable

from services.rqp.service import RqpService
from services.store import Queue
from services.store.model import Protocol

PROTOCOL = Protocol.MCA.value


class Receiver:
    """The receiving MCA of this process: its settings, and the lookup of queues by number."""

    def __init__(self, service: RqpService) -> None:
        self.service = service
        self.settings = service.settings.mca
        self.limits = self.settings.limits()
        self.lost = service.lost.labels(service.metrics.edge, PROTOCOL)
        self.on_change: set[Callable[[], None]] = set()  # called when queue documents have changed
        service.store.catalogue.watch(self._changed)

    def _changed(self, _name: str) -> None:
        for notify in tuple(self.on_change):
            notify()

    def known(self, number: int) -> Queue | None:
        """Return the queue with this number if it is cached."""
        return self.service.store.catalogue.numbers.held(PROTOCOL, number)

    async def find(self, number: int) -> Queue:
        """Return the queue with this number. Raises QueueUnknown, StoreUnavailable."""
        return await self.service.store.catalogue.numbered(PROTOCOL, number)

    def forget(self) -> None:
        """Drop cached numbers: a queue was deleted, and its notification has not arrived yet."""
        self.service.store.catalogue.numbers.changed()
