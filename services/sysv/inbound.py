"""Out of a Penstock queue, into a local one: at least once each (docs/sysv.md 2)."""

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
from services.sysv.kernel import Gone, LocalQueue, LocalQueueError, TooLarge
from services.sysv.mtype import mtype_of
from services.sysv.settings import Mapping as SysvMapping

WINDOW = 16  # messages taken together: as many may come twice after a crash
UNENCODABLE = "unencodable"
FULL = "local_queue_full"
LOOK_S = 1.0  # how often an idle mapping looks whether its local queue is there
FAULT_TRIES = 3  # of a message at which we fail ourselves
FAULT_PAUSE_S = 1.0  # between them
ERROR_LENGTH = 200  # characters of such a failure that are kept with the dead letter


def singles(deliveries: Iterable[Delivery]) -> Iterable[Delivery]:
    """Each message on its own, so that each can be settled when it has arrived."""
    for delivery in deliveries:
        rest = delivery
        while rest.count > 1:
            first, rest = rest.cut(1)
            yield first
        yield rest


class Inbound:
    """One mapping with direction `in`. What it holds is leased to our session, whose heartbeats extend the leases."""

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
        self._faults = 0  # of ours, at the message whose turn it is
        self._limit = 0  # octets of a body, as it was last looked at
        self._queue: Queue | None = None
        self._news = asyncio.Event()
        self._stopping = asyncio.Event()

    @property
    def at_hand(self) -> str:
        """Not told: what fails at a message is told where it does (2.7)."""
        return ""

    def stop_taking(self) -> None:
        """What is held and not sent goes back."""
        self._stopping.set()

    async def run(self) -> None:
        while not self._stopping.is_set():
            try:
                await self._step()
            except (StoreError, LocalQueueError) as error:
                self._queue = None
                self.condition.tell(error.reason, str(error))
                await self._sleep(self._retry.next())
            else:
                self._retry.reset()

    async def _step(self) -> None:
        """Carries what there is, or waits until there is something. Raises StoreError, LocalQueueError."""
        queue = self._queue or await self._find()
        self._news.clear()
        got = await self._take(queue)
        if got:
            await self._carry(queue, deque(singles(got)))
            return
        self._look_after()
        self.condition.clear()
        while not await self._either(self._news):
            self._look_after()

    def _look_after(self) -> None:
        """Makes or finds it again if it was removed: a program may expect it. Raises LocalQueueError."""
        if not self._local.is_there():
            self._local.open()

    async def _find(self) -> Queue:
        """The queue, which tells from now on when it has something. Its handle follows the document."""
        queue = await self._store.catalogue.find(self._mapping.queue)
        self._queue, self._news = queue, self._store.wakes(queue.domain).event(queue)
        return queue

    async def _take(self, queue: Queue) -> list[Delivery]:
        """Leased, even of a queue that delivers at most once: what is sent must be what is settled."""

        def ask(done: Callable[..., None]) -> None:
            self._store.open_domain(queue.domain).pipe.messages.take(
                self._source, queue, WINDOW, done, leased=True
            )

        got: list[Delivery] = await answered(ask, self._unwanted)
        return got

    def _unwanted(self, got: list[Delivery]) -> None:
        """They came after we had ended."""
        if got:
            self._give_back(got[0].queue, got)

    # carrying

    async def _carry(self, queue: Queue, held: deque[Delivery]) -> None:
        """Sends in order; settles what was sent, gives back what was not."""
        sent: list[Delivery] = []
        try:
            while held and not self._stopping.is_set():
                try:
                    done = self._send(held[0])
                except TooLarge as error:
                    await self._bury(queue, held.popleft(), UNENCODABLE, str(error))
                except Gone:
                    self._local.open()
                    await self._sleep(self._full.next())  # it may be gone again
                except LocalQueueError:
                    raise
                except Exception as error:  # noqa: BLE001 - those behind it must not wait for ever
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
        except asyncio.CancelledError:  # the time for the end is over: nobody waits for the answer
            asked, sent = sent, []
            self._ask_to_settle(queue, asked)
            raise
        finally:
            self._give_back(queue, held)
            await self._settle(queue, sent)

    def _send(self, delivery: Delivery) -> bool:
        """False: the local queue is full. Raises TooLarge, Gone, LocalQueueError."""
        content = records.decode(delivery.blob)
        if len(content.body) > self._limit:
            self._limit = self._local.check(len(content.body))
        return self._local.send(content.body, mtype_of(content.attributes))

    async def _wait_for_room(self) -> None:
        self.condition.tell(FULL, "the local queue is full: nobody takes messages out of it")
        await self._sleep(self._full.next())
        self._limit = self._local.limit()  # made smaller, it would seem full for ever

    async def _settle(self, queue: Queue, sent: list[Delivery]) -> None:
        """Raises StoreError: then they come once more."""
        if sent:
            await answered(partial(self._ask_to_settle, queue, sent))

    def _ask_to_settle(
        self, queue: Queue, sent: list[Delivery], done: Callable[..., None] | None = None
    ) -> None:
        if sent:
            self._store.open_domain(queue.domain).pipe.messages.settle(self._source, sent, done)

    async def _failed(self, queue: Queue, held: deque[Delivery], error: Exception) -> None:
        """The message is tried again, but not for ever (2.7)."""
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

    # waiting

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _either(self, news: asyncio.Event) -> bool:
        """Until there may be something to take, or it is told to stop; False: neither came for a while."""
        waits = [asyncio.ensure_future(event.wait()) for event in (news, self._stopping)]
        try:
            done, _ = await asyncio.wait(waits, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        return bool(done)
