"""Waiting for messages without asking all the time: the store tells when an empty queue gets its first one."""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from weakref import WeakSet

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from services.store.model.keys import DomainKeys
from services.store.model.queues import Queue
from services.store.redis.connect import Connector
from services.store.redis.link import explain
from services.store.redis.subscription import subscribed

log = logging.getLogger(__name__)

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


class Wakes:
    """One subscription for many queues of a domain. It listens from `start` until `close`."""

    def __init__(self, connector: Connector, domain: str) -> None:
        self._connector = connector
        self._keys = DomainKeys(domain)
        self._events: dict[
            bytes, WeakSet[asyncio.Event]
        ] = {}  # of each queue those that somebody still holds
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._listen_for_ever(), name=f"wakes {self._keys.domain}")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def event(self, queue: Queue) -> asyncio.Event:
        """Set when the queue may have something: at first, when it gets its first message, and every POLL_S.

        Its holder clears it before it looks into the queue; each caller gets an event of its own.
        """
        event = asyncio.Event()
        event.set()
        self._events.setdefault(queue.qid.encode(), WeakSet()).add(event)
        return event

    def _wake(self, qid: bytes) -> None:
        for event in tuple(self._events.get(qid, ())):
            event.set()

    def _wake_all(self) -> None:
        for qid in tuple(self._events):
            if self._events[qid]:
                self._wake(qid)
            else:
                del self._events[qid]

    async def _listen_for_ever(self) -> None:
        while True:
            try:
                async with subscribed(
                    self._connector, self._keys.epoch, self._keys.wake_channel
                ) as connection:
                    await self._listen(connection)
            except (RedisError, OSError, TimeoutError) as error:
                log.debug("no wakes from the store: %s", error, extra={"action": "wakes_lost"})
            self._wake_all()
            await asyncio.sleep(POLL_S)

    async def _listen(self, connection: AbstractConnection) -> None:
        """Until the connection breaks. What came before it was made is found by looking into every queue."""
        loop = asyncio.get_running_loop()
        poll_at = 0.0
        while True:
            if (rest := poll_at - loop.time()) <= 0:
                self._wake_all()
                poll_at, rest = loop.time() + POLL_S, POLL_S
            message = await connection.read_response(disable_decoding=True, timeout=rest)
            if message is not None:
                self._wake(message[2])
