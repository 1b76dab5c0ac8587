"""Leases of messages pulled around the ring, until their settlement comes or they time out (ring.md 5.4)."""

from __future__ import annotations

import asyncio

from services.ring.service import RingService
from services.store import Delivery

LEAST_S = 1.0  # with a shorter visibility timeout no delivery around a ring would succeed
UNSETTLED = "no settlement came around the ring"


class Leases:
    """The timers of the leases, which the store holds."""

    def __init__(self, service: RingService) -> None:
        self._service = service
        self._loop = asyncio.get_running_loop()
        self._timers: dict[bytes, asyncio.TimerHandle] = {}  # by request id

    def __len__(self) -> int:
        """Return how many messages are leased."""
        return len(self._timers)

    def hold(self, request: bytes, delivery: Delivery) -> None:
        """Return the message as a failed delivery after the queue's visibility timeout, unless it is settled."""
        if delivery.settled:
            return  # at most once: settled when it was taken
        self.settled(request)  # a failover may have lost an earlier lease of this request
        delivery.drop_bodies()
        timeout_s = max(delivery.queue.spec.visibility_timeout / 1000, LEAST_S)
        self._timers[request] = self._loop.call_later(timeout_s, self._over, request, delivery)

    def settled(self, request: bytes) -> None:
        """Stop the timer of a settled message."""
        timer = self._timers.pop(request, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Stop all timers; leases end with this process's session."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _over(self, request: bytes, delivery: Delivery) -> None:
        del self._timers[request]
        self._service.give_back([delivery], failed=True, error=UNSETTLED)
