"""What replicas must have before anybody is told `done` (docs/store.md, ack levels).

WAIT counts the replicas of whoever answers. A primary that stood still, was deposed meanwhile and wakes may still have
one that nobody has told yet: so after a silence the Sentinels (or the Cluster) are asked whether it is the primary.
"""

from __future__ import annotations

import time

from redis.asyncio.connection import AbstractConnection

from services.store.model.errors import StoreUnavailable
from services.store.redis.connect import Connector, ask

SILENCE_S = 0.4  # shorter than any Sentinel or Cluster node waits before it calls a primary down
DOUBT_S = 10.0  # how long after a silence each answer is checked: a failover under way takes its time
STEP_S = 1.0


class Replication:
    """Confirms calls; `heard` is to be told how long each answer took."""

    def __init__(self, connector: Connector, key: str) -> None:
        self._connector = connector
        self._key = key
        self._doubted_until = 0.0

    def heard(self, after_s: float) -> None:
        if after_s > SILENCE_S:
            self._doubted_until = time.monotonic() + DOUBT_S

    async def has(self, connection: AbstractConnection, replicas: int, patience_s: float) -> bool:
        """Whether so many have everything sent on this connection; asks for up to a second.

        Raises StoreUnavailable when another server has taken over, and what redis-py raises.
        """
        asked = time.monotonic()
        have = await ask(connection, "WAIT", replicas, max(1, int(min(STEP_S, patience_s) * 1000)))
        if have < replicas:
            return False
        self.heard(time.monotonic() - asked)
        await self._check(connection)
        return True

    async def _check(self, connection: AbstractConnection) -> None:
        if time.monotonic() < self._doubted_until and not await self._connector.is_primary(
            connection, self._key
        ):
            raise StoreUnavailable("another server has taken over as primary")
