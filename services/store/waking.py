"""Waiting for messages without asking all the time: the store tells when an empty queue gets its first one."""

from __future__ import annotations

import asyncio
from types import TracebackType

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from services.store.connect import Connector
from services.store.keys import DomainKeys
from services.store.link import explain
from services.store.queues import Queue

POLL_S = 1.0  # a notice may be lost, and nothing tells that a pause ended: look again after this long


class Wake:
    """Listens from `async with` on, so that nothing that comes after a look into the queue is missed."""

    def __init__(self, connector: Connector, domain: str) -> None:
        self._connector = connector
        self._keys = DomainKeys(domain)
        self._connection: AbstractConnection | None = None

    async def __aenter__(self) -> Wake:
        """Raises StoreUnavailable."""
        try:
            self._connection = await self._connector.connect(self._keys.epoch)
            await self._connection.send_command("SUBSCRIBE", self._keys.wake_channel)
            await self._connection.read_response(disable_decoding=True)
        except (RedisError, OSError, TimeoutError) as error:
            await self._drop()
            raise explain(error) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._drop()

    async def wait(self, queue: Queue, timeout_s: float) -> None:
        """Returns when the queue may have something, after POLL_S, or after the timeout, whichever is first."""
        try:
            async with asyncio.timeout(min(timeout_s, POLL_S)):
                while await self._news() != queue.qid.encode():
                    continue
        except TimeoutError:
            return

    async def _news(self) -> bytes:
        """The queue id of the next notice. A wait that is over leaves the connection as it is, for the next one."""
        if self._connection is not None:
            try:
                message = await self._connection.read_response(
                    disable_decoding=True, disconnect_on_error=False
                )
            except (RedisError, OSError):
                await self._drop()
            else:
                return bytes(message[2])
        await asyncio.Event().wait()  # nobody tells any more: the poll goes on
        raise AssertionError("unreachable")

    async def _drop(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.disconnect(nowait=True)
