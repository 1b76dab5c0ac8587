"""Carry messages from a Penstock queue into a local one, at least once (docs/sysv.md 2)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from services.store import Delivery, Queue, Source, Store, StoreError
from services.store.model import records
from services.store.pipeline import answered
from services.sysv.condition import FAULT, Condition, Pause
from services.sysv.kernel import LocalQueue, LocalQueueError, Removed, TooLarge
from services.sysv.mtype import mtype_of
from services.sysv.settings import Mapping as SysvMapping

WINDOW = 16  # messages taken at once; as many may be repeated after a crash
UNENCODABLE = "unencodable"
FULL = "local_queue_full"
CHECK_S = 1.0  # how often an idle mapping checks that its local queue exists
FAULT_TRIES = 3  # of a message that causes internal errors
FAULT_PAUSE_S = 1.0  # between them
ERROR_LENGTH = 200  # characters of such an error kept with the dead letter


def singles(deliveries: Iterable[Delivery]) -> Iterable[Delivery]:
    """Split deliveries into single messages, so that each can be settled on its own."""
    for delivery in deliveries:
        rest = delivery
        while rest.count > 1:
            first, rest = rest.cut(1)
            yield first
        yield rest


class Inbound:
    """One mapping with direction `in`. It holds leases, which the session's heartbeats extend."""

    def __init__(
        self,
        mapping: SysvMapping,
        local: LocalQueue,
        store: Store,
        condition: Condition,
        idle_s: float,
        retry_s: float,
    ) -> None:
        self._mapping = mapping
        self._local = local
        self._store = store
        self.condition = condition
        self._full = Pause(idle_s)
        self._retry = Pause(retry_s)
        self._source = Source(store.client())
        self._faults = 0  # internal errors at the current message
        self._limit = 0  # octets of a body, at the last check
        self._queue: Queue | None = None
        self._news = asyncio.Event()
        self._stopping = asyncio.Event()

    @property
    def current_message(self) -> str:
        """Return '': errors of a message are logged where they occur (2.7)."""
        return ""

    def stop_taking(self) -> None:
        """Return the messages that were not sent."""
        self._stopping.set()

    async def run(self) -> None:
        """Carry messages until stopped; retry after errors of the store and of the local queue."""
        while not self._stopping.is_set():
            try:
                await self._step()
            except (StoreError, LocalQueueError) as error:
                self._queue = None
                self.condition.wait(error.reason, str(error))
                await self._sleep(self._retry.next())
            else:
                self._retry.reset()

    async def _step(self) -> None:
        """Carry available messages, or wait for some. Raises StoreError, LocalQueueError."""
        queue = self._queue or await self._find()
        self._news.clear()
        got = await self._take(queue)
        if got:
            await self._carry(queue, deque(singles(got)))
            return
        self._reopen_if_removed()
        self.condition.clear()
        while not await self._either(self._news):
            self._reopen_if_removed()

    def _reopen_if_removed(self) -> None:
        """Open the local queue again if it was removed, as programs may expect it. Raises LocalQueueError."""
        if not self._local.exists():
            self._local.open()

    async def _find(self) -> Queue:
        """Find the queue, and subscribe to its notifications."""
        queue = await self._store.catalogue.find(self._mapping.queue)
        self._queue, self._news = queue, self._store.wakes(queue.domain).event(queue)
        return queue

    async def _take(self, queue: Queue) -> list[Delivery]:
        """Take messages with leases, also from a queue that delivers at most once: only sent messages are settled."""

        def ask(done: Callable[..., None]) -> None:
            self._store.open_domain(queue.domain).pipe.messages.take(
                self._source, queue, WINDOW, done, leased=True
            )

        got: list[Delivery] = await answered(ask, self._unwanted)
        return got

    def _unwanted(self, got: list[Delivery]) -> None:
        """Return messages that arrived after the end."""
        if got:
            self._give_back(got[0].queue, got)

    # Carrying

    async def _carry(self, queue: Queue, held: deque[Delivery]) -> None:
        """Send messages in order; settle those that were sent, return the others."""
        sent: list[Delivery] = []
        try:
            while held and not self._stopping.is_set():
                try:
                    done = self._send(held[0])
                except TooLarge as error:
                    await self._bury(queue, held.popleft(), UNENCODABLE, str(error))
                except Removed:
                    self._local.open()
                    await self._sleep(self._full.next())  # it may be removed again
                except LocalQueueError:
                    raise
                except Exception as error:  # noqa: BLE001 - later messages must not wait for ever
                    await self._failed(queue, held, error)
                else:
                    if done:
                        sent.append(held.popleft())
                        self._faults = 0
                        self.condition.carried()
                        self._full.reset()
                    else:
                        asked, sent = sent, []
                        await self._settle(queue, asked)
                        await self._wait_for_room()
        except asyncio.CancelledError:  # the drain is over: do not wait for the reply
            asked, sent = sent, []
            self._ask_to_settle(queue, asked)
            raise
        finally:
            self._give_back(queue, held)
            await self._settle(queue, sent)

    def _send(self, delivery: Delivery) -> bool:
        """Send a message. Return False if the local queue is full. Raises TooLarge, Removed, LocalQueueError."""
        content = records.decode(delivery.blob)
        if len(content.body) > self._limit:
            self._limit = self._local.check(len(content.body))
        return self._local.send(content.body, mtype_of(content.attributes))

    async def _wait_for_room(self) -> None:
        self.condition.wait(FULL, "the local queue is full: its consumer does not receive messages")
        await self._sleep(self._full.next())
        # the limit may have been lowered: a larger message would wait for ever
        self._limit = self._local.limit()

    async def _settle(self, queue: Queue, sent: list[Delivery]) -> None:
        """Settle messages. Raises StoreError: then they are sent again."""
        if sent:
            await answered(partial(self._ask_to_settle, queue, sent))

    def _ask_to_settle(
        self, queue: Queue, sent: list[Delivery], done: Callable[..., None] | None = None
    ) -> None:
        if sent:
            self._store.open_domain(queue.domain).pipe.messages.settle(self._source, sent, done)

    async def _failed(self, queue: Queue, held: deque[Delivery], error: Exception) -> None:
        """Retry the message FAULT_TRIES times, then move it to the dead letters (2.7)."""
        self._faults += 1
        entry = held[0].entry.decode("ascii", "replace")
        self.condition.failed(error, f"message {entry} of {queue.name}")
        if self._faults < FAULT_TRIES:
            await self._sleep(FAULT_PAUSE_S)
            return
        self._faults = 0
        await self._bury(queue, held.popleft(), FAULT, repr(error)[:ERROR_LENGTH])

    async def _bury(self, queue: Queue, delivery: Delivery, reason: str, error: str) -> None:
        pipe = self._store.open_domain(queue.domain).pipe
        await answered(partial(pipe.messages.reject, self._source, [delivery], reason, error))
        self.condition.buried(reason)

    def _give_back(self, queue: Queue, held: Iterable[Delivery]) -> None:
        if leased := list(held):
            self._store.open_domain(queue.domain).pipe.messages.give_back(leased)

    # Waiting

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _either(self, news: asyncio.Event) -> bool:
        """Wait for messages or a stop. Return False if neither came within CHECK_S."""
        waits = [asyncio.ensure_future(event.wait()) for event in (news, self._stopping)]
        try:
            done, _ = await asyncio.wait(waits, timeout=CHECK_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        return bool(done)
