"""Several connections for what sessions claim: on one alone each would wait for the disk behind the others."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

from services.rqp.service import RqpService
from services.store import Queue
from services.store.pipeline import Claims, Domain
from services.store.redis import Connector, Link

LANES = 4  # for each domain


class ClaimConnection:
    """Claims of one domain, over a connection of its own."""

    def __init__(self, connector: Connector, domain: Domain) -> None:
        self.link = Link(connector, domain.keys.epoch)
        self.waiting = 0  # questions that have no answer yet
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
    """Those of a process."""

    def __init__(self, service: RqpService) -> None:
        self._service = service
        self._lanes: defaultdict[str, list[ClaimConnection]] = defaultdict(list)

    def of(self, queue: Queue) -> Claims:
        """The one that has least to do."""
        lanes = self._lanes[queue.domain]
        least = min(lanes, key=lambda lane: lane.waiting, default=None)
        if least is None or (least.waiting and len(lanes) < LANES):
            least = ClaimConnection(self._service.store.connector, self._service.domain(queue))
            lanes.append(least)
        return least.claims

    async def close(self) -> None:
        lanes = [lane for lanes in self._lanes.values() for lane in lanes]
        await asyncio.gather(*(lane.link.close() for lane in lanes))
