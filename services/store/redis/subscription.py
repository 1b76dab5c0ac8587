"""What is told on one channel of the store's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redis.asyncio.connection import AbstractConnection

from services.store.redis.connect import Connector

ANSWER_S = 5.0  # a store that has let us in says within this that it tells us


@asynccontextmanager
async def subscribed(connector: Connector, key: str, channel: str) -> AsyncIterator[AbstractConnection]:
    """A connection to the primary that holds `key`, on which the channel's messages come from now on.

    Raises RedisError, OSError or TimeoutError.
    """
    connection = await connector.connect(key)
    try:
        async with asyncio.timeout(ANSWER_S):
            await connection.send_command("SUBSCRIBE", channel)
            await connection.read_response(disable_decoding=True)
        yield connection
    finally:
        await connection.disconnect(nowait=True)
