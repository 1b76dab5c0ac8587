"""Wait for messages: the store publishes a notification when an empty queue gets its first one."""

from __future__ import annotations

import asyncio
import logging
from weakref import WeakSet

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from services.store.model.keys import DomainKeys
from services.store.model.queues import Queue
from services.store.redis.connect import Connector
from services.store.redis.subscription import subscribed

log = logging.getLogger(__name__)

POLL_S = 1.0  # poll interval: notifications may be lost, and none is sent when a pause ends


class Wakes:
    """One subscription for many queues of a domain. It listens from `start` until `close`."""

    def __init__(self, connector: Connector, domain: str) -> None:
        self._connector = connector
        self._keys = DomainKeys(domain)
        self._events: dict[bytes, WeakSet[asyncio.Event]] = {}  # by queue id: those still in use
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Subscribe, and renew the subscription after faults."""
        self._task = asyncio.create_task(self._listen_for_ever(), name=f"wakes {self._keys.domain}")

    async def close(self) -> None:
        """End the subscription; events are set no longer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def event(self, queue: Queue) -> asyncio.Event:
        """Return a new event that is set when the queue may have messages.

        It is set now, at each notification, and every POLL_S. Clear it before you take from the queue.
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
                log.debug("queue notifications lost; polling: %s", error, extra={"action": "wakes_lost"})
            self._wake_all()
            await asyncio.sleep(POLL_S)

    async def _listen(self, connection: AbstractConnection) -> None:
        """Set events until the connection is lost. Begin with all, as notifications were missed before."""
        loop = asyncio.get_running_loop()
        poll_at = 0.0
        while True:
            if (rest := poll_at - loop.time()) <= 0:
                self._wake_all()
                poll_at, rest = loop.time() + POLL_S, POLL_S
            message = await connection.read_response(disable_decoding=True, timeout=rest)
            if message is not None:
                self._wake(message[2])
