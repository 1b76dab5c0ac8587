"""Connections to the store for reservations: on a single one, each would wait for the disk behind the others."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

from services.rqp.service import RqpService
from services.store import Queue
from services.store.pipeline import Claims, Domain
from services.store.redis import Connector, Link

CONNECTIONS = 4  # for each domain


class ClaimConnection:
    """The claims of one domain, over a connection of their own."""

    def __init__(self, connector: Connector, domain: Domain) -> None:
        self.link = Link(connector, domain.keys.epoch)
        self.waiting = 0  # calls without an answer yet
        self.claims = Claims(domain.keys, self.link, domain.tallies, self._function)
        self._domain = domain

    async def _function(self, name: str, keys: list[str], *args: Any) -> Any:
        self.waiting += 1
        try:
            epoch = self._domain.pipe.epoch or await self._domain.epoch()
            keys = [self._domain.keys.epoch, *keys]
            return await self.link.function(name, keys, epoch, *args)
        finally:
            self.waiting -= 1


class ClaimConnections:
    """All such connections of a process, opened on demand."""

    def __init__(self, service: RqpService) -> None:
        self._service = service
        self._connections: defaultdict[str, list[ClaimConnection]] = defaultdict(list)

    def of(self, queue: Queue) -> Claims:
        """Return the claims of the queue's domain over its least busy connection."""
        connections = self._connections[queue.domain]
        least = min(connections, key=lambda each: each.waiting, default=None)
        if least is None or (least.waiting and len(connections) < CONNECTIONS):
            least = ClaimConnection(self._service.store.connector, self._service.domain(queue))
            connections.append(least)
        return least.claims

    async def close(self) -> None:
        """Close all connections."""
        connections = [each for found in self._connections.values() for each in found]
        await asyncio.gather(*(each.link.close() for each in connections))
