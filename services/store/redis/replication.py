"""Wait until replicas have a call's changes (docs/store.md, ack levels).

WAIT counts the replicas of the server that answers. A primary that hung and was replaced meanwhile may still have a
replica that has not heard of the failover. So after a silence, the Sentinels (or the Cluster) are asked who is primary.
"""

from __future__ import annotations

import time

from redis.asyncio.connection import AbstractConnection

from services.store.model.errors import StoreUnavailable
from services.store.redis.connect import Connector, ask

SILENCE_S = 0.4  # shorter than the time after which Sentinels or Cluster nodes call a primary down
DOUBT_S = 10.0  # for this long after a silence each answer is checked, as a failover takes time
STEP_S = 1.0


class Replication:
    """Confirmation of replicated calls. Pass the latency of each answer to `heard`."""

    def __init__(self, connector: Connector, key: str) -> None:
        self._connector = connector
        self._key = key
        self._doubted_until = 0.0

    def heard(self, after_s: float) -> None:
        """Check the primary from now on if an answer took so long that a failover may have happened."""
        if after_s > SILENCE_S:
            self._doubted_until = time.monotonic() + DOUBT_S

    async def has(self, connection: AbstractConnection, replicas: int, patience_s: float) -> bool:
        """Return whether so many replicas have everything sent on this connection; wait for up to a second.

        Raises StoreUnavailable if another server has taken over, and what redis-py raises.
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
