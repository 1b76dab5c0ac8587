"""What the successor has answered leaves the store, many at a time, with the next call that there is (ring.md 2.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from services.ring.node.outgoing.parcels import Stored, merged
from services.ring.service import RingService
from services.store import INTERNAL_CLIENT, Delivery, Queue, Source, StoreError
from services.store.model import LeaseLost, QueueUnknown

WAIT_S = 0.01  # for a call to go with
MANY = 64  # messages that do not wait
AGAIN_S = 1.0


class Settling:
    def __init__(self, service: RingService, settled: Callable[[], None]) -> None:
        """settled: called after something was handed to the store, for there is room for more."""
        self._service = service
        self._settled = settled
        self._loop = asyncio.get_running_loop()
        self._queue: Queue | None = None
        self._life = 0  # of the leases
        self._source = Source(INTERNAL_CLIENT)
        self._answered: list[Stored] = []
        self._timer: asyncio.TimerHandle | None = None

    def use(self, queue: Queue | None) -> None:
        """From now on. What was leased before is not any more, or soon."""
        self._queue = queue
        self._life += 1
        self._answered.clear()

    def add(self, parcel: Stored) -> None:
        self._answered.append(parcel)
        if len(self._answered) >= MANY:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(WAIT_S, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._answered or self._queue is None:
            return
        answered, self._answered = self._answered, []
        self._settle(self._life, self._queue, merged(answered))
        self._settled()

    def _settle(self, life: int, queue: Queue, deliveries: list[Delivery]) -> None:
        def settled(error: StoreError | None) -> None:
            if error is not None and not isinstance(error, LeaseLost | QueueUnknown) and life == self._life:
                # a lease that is never settled would last as long as this process
                self._loop.call_later(AGAIN_S, self._settle, life, queue, deliveries)

        if life == self._life:
            self._service.pipe(queue).messages.settle(self._source, deliveries, settled)
