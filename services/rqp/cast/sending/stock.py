"""What a transmission queue has given out to be sent: ready, or waiting for its time (rqp_cast.md 4).

All of it is leased. What is kept with a message is its note in the store: it survives whoever sends, and returns.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from protos.rqp_cast import ZERO_ID, Kept, Outgoing, Quality, encode_record
from services.rqp.cast.notes import Note
from services.rqp.service import RqpService
from services.store import INTERNAL_CLIENT, Delivery, Queue, Source, Store, StoreError
from services.store.model import now, records
from services.store.pipeline import answered
from services.store.processes import POLL_S

WANTED = 32  # messages taken at once
MAX_WAITING = 256  # whose time has not come; beyond it nothing more is taken
IDS_AT_ONCE = 256


class Ids:
    """Numbers of messages, unique in the store, never 0 (2.3). Those that a process does not use are lost."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left: deque[int] = deque()
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        """Raises StoreError."""
        async with self._lock:
            if not self._left:
                first = await self._store.registry.next_ids(IDS_AT_ONCE)
                self._left.extend(range(first, first + IDS_AT_ONCE))
        return self._left.popleft()


@dataclass(slots=True)
class Message:
    """One message of the queue. An uncertain one has no note, as nothing is kept with it."""

    delivery: Delivery
    record: bytes  # u32 message_size, data
    note: Note | None
    is_new: bool = False  # the note has not been written yet

    @property
    def outgoing(self) -> Outgoing:
        if self.note is None:
            return Outgoing(Quality.LOW_QUALITY, ZERO_ID)
        return Outgoing(Quality.HIGH_QUALITY, self.note.id, self.note.kept)

    @property
    def not_before(self) -> float | None:
        return None if self.note is None else self.note.kept.not_before


class Stock:
    """Of one queue that this process owns."""

    def __init__(self, service: RqpService, queue: Queue, ids: Ids, address: Callable[[], str]) -> None:
        """address: the stable one of this agent."""
        self.on_empty: Callable[[], None] = lambda: None  # there is nothing to send
        self._queue = queue
        self._pipe = service.pipe(queue)
        self._source = Source(INTERNAL_CLIENT)
        self._clock = self._pipe.clock
        self._max_backoff_s = service.settings.cast.max_backoff_s
        self._ids = ids
        self._address = address
        self._news = service.store.wakes(queue.domain).event(queue)
        self._ready: deque[Message] = deque()
        self._waiting: list[tuple[float, int, Message]] = []  # a heap: (not before, number, message)
        self._numbers = itertools.count()
        self._under_way = 0  # takes and returns that the store has not answered
        self._quiet = asyncio.Event()  # none are
        self._quiet.set()

    async def next(self) -> Message:
        """The next message whose turn it is, waited for. Raises StoreError."""
        while True:
            if self._waiting and self._waiting[0][0] <= now():
                return heapq.heappop(self._waiting)[2]
            while self._ready:
                message = self._ready.popleft()
                if message.not_before is None or message.not_before <= now():
                    return message
                heapq.heappush(self._waiting, (message.not_before, next(self._numbers), message))
            self._news.clear()
            if not await self._take():
                if not self._waiting:
                    self.on_empty()
                await self._wait()

    async def keep(self, message: Message, kept: Kept) -> None:
        """Durably, with a certain message. Raises StoreError."""
        assert message.note is not None
        note = Note(message.note.id, message.note.address, kept)
        if note.kept != message.note.kept:
            await self._write(message.delivery, note)
            message.note = note

    async def put_back(self, message: Message) -> None:
        """To its place, and what was taken ahead with it to theirs: it is the next again (4.1). Raises StoreError."""
        deliveries = [message.delivery, *(each.delivery for each in self._ready)]
        self._ready.clear()
        await answered(
            lambda done: self._pipe.messages.release(self._source, deliveries, failed=False, done=done)
        )

    def release(self) -> None:
        """Everything that is not being sent goes back to its place."""
        messages = (*self._ready, *(message for *_, message in self._waiting))
        deliveries = [message.delivery for message in messages]
        self._ready.clear()
        self._waiting.clear()
        self.give_back(deliveries)

    def give_back(self, deliveries: list[Delivery], failed: bool = False) -> None:
        """These return to their places. failed: it counts towards maxDeliveries."""
        if deliveries:
            self._begin()
            self._pipe.messages.release(
                self._source, deliveries, failed=failed, done=lambda _error: self._end()
            )

    async def is_quiet(self) -> None:
        """Returns once the store has all that went back: whoever has the queue next finds it in its order."""
        await self._quiet.wait()

    def _begin(self) -> None:
        self._under_way += 1
        self._quiet.clear()

    def _end(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._quiet.set()

    # taking

    async def _take(self) -> bool:
        """Whether there was anything."""
        if len(self._waiting) >= MAX_WAITING:
            return False
        got: list[Delivery] = await self._taken()
        singles = [single for delivery in got for single in singly(delivery)]
        try:
            await self._prepare(singles)
        except BaseException:
            self._ready.clear()
            self.give_back(singles)
            raise
        return bool(singles)

    async def _taken(self) -> list[Delivery]:
        """Leased. If the asker is cancelled meanwhile, they go back."""

        def ask(done: Callable[..., None]) -> None:
            def taken(got: list[Delivery] | StoreError, more: bool) -> None:
                if more and not got:  # those looked at had expired, or were others'
                    self._pipe.messages.take(self._source, self._queue, WANTED, taken, leased=True)
                    return
                done(got)
                self._end()

            self._pipe.messages.take(self._source, self._queue, WANTED, taken, leased=True)

        self._begin()
        taken: list[Delivery] = await answered(ask, unwanted=self.give_back)
        return taken

    async def _prepare(self, deliveries: list[Delivery]) -> None:
        """What is certain gets its id, before anything of it is sent; the notes of all are written together (2.3)."""
        found = [message for each in deliveries if (message := await self._message(each)) is not None]
        self._ready.extend(found)
        await asyncio.gather(
            *(
                self._write(each.delivery, each.note)
                for each in found
                if each.note is not None and each.is_new
            )
        )

    async def _message(self, delivery: Delivery) -> Message | None:
        """None for a damaged one, which has gone to the dead letters (4.3)."""
        try:
            content = records.decode(delivery.blob)
        except ValueError as error:
            self._pipe.messages.reject(self._source, [delivery], "injured", str(error))
            return None
        record = encode_record(content.body)
        if not self._is_certain(content):
            return Message(delivery, record, None)
        if (note := Note.parse(delivery.note, self._clock, self._max_backoff_s)) is not None:
            return Message(delivery, record, note)
        return Message(delivery, record, Note(await self._ids.next(), self._address(), Kept()), is_new=True)

    def _is_certain(self, content: records.Content) -> bool:
        """As the message says, which was a T_MSG then, else as its queue does."""
        remote = self._queue.spec.remote
        return remote is None or remote.is_certain(content.attributes)

    async def _write(self, delivery: Delivery, note: Note) -> None:
        await answered(
            lambda done: self._pipe.messages.note(self._source, delivery, note.text(self._clock), done)
        )

    async def _wait(self) -> None:
        """Until there may be something, or somebody's time has come."""
        until_s = self._waiting[0][0] - now() if self._waiting else POLL_S
        try:
            async with asyncio.timeout(max(min(until_s, POLL_S), 0.001)):
                await self._news.wait()
        except TimeoutError:
            return


def singly(delivery: Delivery) -> list[Delivery]:
    """Each of its messages alone."""
    found = []
    while delivery.count > 1:
        first, delivery = delivery.cut(1)
        found.append(first)
    return [*found, delivery]
