"""What all connections of a receiving MCA share (rqp_mca.md 2)."""

from __future__ import annotations

from collections.abc import Callable

from services.rqp.service import RqpService
from services.store import Queue
from services.store.model import Protocol

PROTOCOL = Protocol.MCA.value


class Receiver:
    def __init__(self, service: RqpService) -> None:
        self.service = service
        self.settings = service.settings.mca
        self.limits = self.settings.limits()
        self.lost = service.lost.labels(service.metrics.edge, PROTOCOL)
        self.followers: set[Callable[[], None]] = set()  # told when documents of queues have changed
        service.store.catalogue.watch(self._changed)

    def _changed(self, _name: str) -> None:
        for told in tuple(self.followers):
            told()

    def known(self, number: int) -> Queue | None:
        """The queue of this number, if the store need not be asked."""
        return self.service.store.catalogue.numbers.held(PROTOCOL, number)

    async def find(self, number: int) -> Queue:
        """Raises QueueUnknown, StoreUnavailable."""
        return await self.service.store.catalogue.numbered(PROTOCOL, number)

    def forget(self) -> None:
        """What was known is not so any more: a queue has gone, of which nobody has told us yet."""
        self.service.store.catalogue.numbers.changed()
