"""Settle answered messages in the store, many at a time, with the next call that there is (ring.md 2.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from services.ring.node.outgoing.stored_message import StoredMessage, merged
from services.ring.service import RingService
from services.store import INTERNAL_CLIENT, Delivery, Queue, Source, StoreError
from services.store.model import LeaseLost, QueueUnknown

WAIT_S = 0.01  # for another call to join
MANY = 64  # messages settled without waiting
AGAIN_S = 1.0


class Settler:
    """Gathers answered messages and settles them."""

    def __init__(self, service: RingService, settled: Callable[[], None]) -> None:
        """settled: called after messages were settled, as there is room for more."""
        self._service = service
        self._settled = settled
        self._loop = asyncio.get_running_loop()
        self._queue: Queue | None = None
        self._generation = 0  # generation of the leases
        self._source = Source(INTERNAL_CLIENT)
        self._answered: list[StoredMessage] = []
        self._timer: asyncio.TimerHandle | None = None

    def use(self, queue: Queue | None) -> None:
        """Use this queue from now on; leases of the former one end."""
        self._queue = queue
        self._generation += 1
        self._answered.clear()

    def add(self, message: StoredMessage) -> None:
        """Settle a message within WAIT_S, with others."""
        self._answered.append(message)
        if len(self._answered) >= MANY:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(WAIT_S, self.flush)

    def flush(self) -> None:
        """Settle all that was gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._answered or self._queue is None:
            return
        answered, self._answered = self._answered, []
        self._settle(self._generation, self._queue, merged(answered))
        self._settled()

    def _settle(self, generation: int, queue: Queue, deliveries: list[Delivery]) -> None:
        def settled(error: StoreError | None) -> None:
            if (
                error is not None
                and not isinstance(error, LeaseLost | QueueUnknown)
                and generation == self._generation
            ):
                # retry: an unsettled lease would last as long as this process
                self._loop.call_later(AGAIN_S, self._settle, generation, queue, deliveries)

        if generation == self._generation:
            self._service.pipe(queue).messages.settle(self._source, deliveries, settled)
