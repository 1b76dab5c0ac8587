"""Messages that were pulled around the ring, until their settlement comes, or does not (ring.md 5.4)."""

from __future__ import annotations

import asyncio

from services.ring.service import RingService
from services.store import Delivery

LEAST_S = 1.0  # a queue that gives no time at all would never deliver anything around a ring
UNSETTLED = "no settlement came around the ring"


class Leases:
    """The store has the leases; here stands when they are over."""

    def __init__(self, service: RingService) -> None:
        self._service = service
        self._loop = asyncio.get_running_loop()
        self._timers: dict[bytes, asyncio.TimerHandle] = {}  # by request id

    def __len__(self) -> int:
        return len(self._timers)

    def hold(self, request: bytes, delivery: Delivery) -> None:
        """It goes back after the queue's visibility timeout, as a delivery that failed."""
        if delivery.settled:
            return  # at most once: it was settled before anybody saw it
        self.settled(request)  # the store may have lost that lease in a failover, and given another
        delivery.drop_bodies()
        timeout_s = max(delivery.queue.spec.visibility_timeout / 1000, LEAST_S)
        self._timers[request] = self._loop.call_later(timeout_s, self._over, request, delivery)

    def settled(self, request: bytes) -> None:
        timer = self._timers.pop(request, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """What is still leased goes back with this process's session."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _over(self, request: bytes, delivery: Delivery) -> None:
        del self._timers[request]
        self._service.give_back([delivery], failed=True, error=UNSETTLED)
