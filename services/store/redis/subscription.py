"""Subscribe to a channel of the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redis.asyncio.connection import AbstractConnection

from services.store.redis.connect import Connector

ANSWER_S = 5.0  # for the confirmation of the subscription


@asynccontextmanager
async def subscribed(connector: Connector, key: str, channel: str) -> AsyncIterator[AbstractConnection]:
    """Open a connection to the key's primary that receives the channel's messages from now on.

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
