"""Out of a local queue, into a Penstock queue: once each, whatever dies on the way (docs/sysv.md 3)."""

from __future__ import annotations

import asyncio
import ctypes
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar
from zlib import crc32

from services.store import Source, Store, StoreError
from services.store.model import (
    JournalNumber,
    MessageTooLarge,
    Outcome,
    OutcomeUnknown,
    QueueFull,
    QueueUnknown,
    records,
)
from services.store.pipeline import answered
from services.sysv.condition import Condition, Pause
from services.sysv.journal import Journal
from services.sysv.journal_file import JournalError
from services.sysv.kernel import MTYPE, Gone, LocalQueue, LocalQueueError, TooLarge
from services.sysv.places import Place, Places
from services.sysv.record import UNSEEN, Record
from services.sysv.settings import LARGEST_BODY, Mapping, format_key

log = logging.getLogger(__name__)

AnswerT = TypeVar("AnswerT")

TOO_LARGE = "too_large_for_queue"
FIRST_ROOM = 8192  # octets offered at first: the kernel's work for a look, and ours, grows with the room


class Outbound:
    """One mapping with direction `out`. At any time at most one message is on its way: the store goes by the highest
    number that it has seen, so a later one must not pass an earlier one."""

    def __init__(
        self,
        mapping: Mapping,
        local: LocalQueue,
        journal: Journal,
        store: Store,
        condition: Condition,
        idle_s: float,
        retry_s: float,
    ) -> None:
        self._mapping = mapping
        self._local = local
        self._journal = journal
        self._store = store
        self.condition = condition
        self._places = Places(store, mapping.queue)
        self._idle = Pause(idle_s)
        self._retry = Pause(retry_s)
        self._source = Source(store.client())
        self._seen = ctypes.create_string_buffer(MTYPE)  # the next message, as it was looked at
        self._stopping = asyncio.Event()
        self._origin = f"sysv {format_key(mapping.key)}"

    @property
    def at_hand(self) -> str:
        """The message that it has taken out, for whoever reads of a fault."""
        pending = self._journal.pending
        return "" if pending is None else f"message {pending.number} of the journal {self._journal.path}"

    def stop_taking(self) -> None:
        """What was taken out is still brought to its end; if that fails, it stays in the journal."""
        self._stopping.set()

    async def run(self) -> None:
        if self._journal.pending is not None:
            await self._finish(self._journal.pending, is_replay=True)
        while not self._stopping.is_set():
            record = await self._next()
            if record is not None:
                await self._finish(record, is_replay=False)

    # taking

    async def _next(self) -> Record | None:
        """A message that is safe in the journal; None if there was none, after a pause."""
        try:
            record = self._take()
        except Gone as error:
            self._reopen(error)
            await self._sleep(self._retry)
        except TooLarge:
            await self._make_room()
        except (LocalQueueError, JournalError) as error:
            self.condition.tell(error.reason, str(error))
            await self._sleep(self._retry)
        else:
            if record is None:
                self.condition.clear()
                await self._sleep(self._idle)
                return None
            self._idle.reset()
            await self._sync()
            return record
        return None

    async def _sync(self) -> None:
        """In a thread: a slow disk must not keep the heartbeats from the store."""
        try:
            await asyncio.to_thread(self._journal.sync)
        except OSError as error:  # the sooner it is published, the sooner it is safe
            self.condition.tell(
                "no_sync", f"the journal {self._journal.path} did not reach the disk: {error}"
            )

    def _take(self) -> Record | None:
        """The next message, in the journal, or None. Raises TooLarge where the journal has too little room for it."""
        size = self._with_room(self._look)
        if size is not None:
            with suppress(TooLarge):  # somebody else took the one that was looked at
                return self._receive(size, size, crc32(memoryview(self._seen)[: MTYPE + size]))
        elif self._local.waiting():
            return self._with_room(self._receive)
        return None

    def _with_room(self, ask: Callable[[int], AnswerT]) -> AnswerT:
        """Offers more room as long as it is too little. Raises TooLarge when that is all there is."""
        room = min(FIRST_ROOM, self._journal.room)
        while True:
            try:
                return ask(room)
            except TooLarge:
                if room == self._journal.room:
                    raise
            room = min(2 * room, self._journal.room)

    def _look(self, room: int) -> int | None:
        if len(self._seen) < MTYPE + room:
            self._seen = ctypes.create_string_buffer(MTYPE + room)
        return self._local.look(ctypes.addressof(self._seen), room)

    def _receive(self, room: int, seen_length: int = UNSEEN, seen_crc: int = 0) -> Record | None:
        """Nothing may come between `msgrcv` and the receipt but the end of the process."""
        self._journal.plan(self._mapping.queue, self._mapping.format, room, seen_length, seen_crc)
        taken = self._local.receive(self._journal.address, room)
        return None if taken is None else self._journal.received(taken)

    async def _make_room(self) -> None:
        """Somebody has made msgmax larger."""
        room = min(2 * self._journal.room, LARGEST_BODY)
        try:
            if room == self._journal.room:
                raise JournalError("too_large", "the next message is larger than any that the store can hold")
            self._journal.grow(room)
        except JournalError as error:
            self.condition.tell(error.reason, str(error))
            await self._sleep(self._retry)

    def _reopen(self, error: Gone) -> None:
        try:
            self._local.open()
        except LocalQueueError as worse:
            self.condition.tell(worse.reason, str(worse))
        else:
            log.info("%s: opened again", error, extra={"action": "sysv_reopened"})

    # publishing

    async def _finish(self, record: Record, *, is_replay: bool) -> None:
        """Returns once it is durable in the store, and struck out; until then nothing else is taken out (3.4).

        Told to stop meanwhile, it leaves the message in the journal.
        """
        may_be_there = is_replay
        place: Place | None = None
        while True:
            try:
                place = place or await self._places.place_of(record)
                outcome = await self._publish(record, place)
            except StoreError as error:
                if place is not None and (reason := _never_fits(error, place)):  # it would wait for ever
                    place = replace(place, reason=reason[0], error=reason[1])
                    continue
                may_be_there = may_be_there or isinstance(error, OutcomeUnknown)
                self.condition.tell(error.reason, self._explain(error, record, place))
                await self._sleep(self._retry)
                if self._stopping.is_set():
                    return
                self._places.forget()  # documents change
                place = None
            else:
                if outcome is Outcome.STORED or may_be_there:
                    self._done(place)
                    return
                record = await self._begin_anew(record)

    async def _publish(self, record: Record, place: Place) -> Outcome:
        """Raises StoreError."""
        ask = partial(
            self._store.open_domain(place.queue.domain).pipe.idempotent.publish,
            self._source,
            JournalNumber(record.journal, record.number),
            place.queue,
            place.record,
            self._origin,
            reason=place.reason,
            error=place.error,
        )
        outcome: Outcome = await answered(ask)
        return outcome

    def _explain(self, error: StoreError, record: Record, place: Place | None) -> str:
        if not isinstance(error, QueueUnknown) or (place is not None and place.queue.name != record.queue):
            return str(error)
        return (
            f"there is no queue {record.queue!r}, and a message for it is in the journal {self._journal.path}: "
            f"create it again, or start anew with key {format_key(self._mapping.key)} mapped to another queue, "
            "then the message goes there"
        )

    def _done(self, place: Place) -> None:
        self._journal.strike()
        self._retry.reset()
        if place.reason:
            self.condition.buried(place.reason)
        else:
            self.condition.carried()

    async def _begin_anew(self, record: Record) -> Record:
        """The store has this number already, and it was another message: we are a copy of a process (3.3)."""
        log.error(
            "somebody else counts as the journal %s does: it goes on under a new name",
            self._journal.path,
            extra={"action": "journal_stale", "mapping": self.condition.mapping, "number": record.number},
        )
        renewed = self._journal.renew()
        await self._sync()
        return renewed

    async def _sleep(self, pause: Pause) -> None:
        """Until it is over, or it is told to stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(pause.next()):
                await self._stopping.wait()


def _never_fits(error: StoreError, place: Place) -> tuple[str, str] | None:
    """Reason and text for the dead letters, if what was refused is larger than its queue ever takes (3.6)."""
    if isinstance(error, MessageTooLarge):
        return error.reason, str(error)
    size, most = len(place.record) - records.HEAD.size, place.queue.spec.max_bytes
    if not isinstance(error, QueueFull) or not 0 < most < size:
        return None
    text = f"{size:,} octets with its attributes, and the whole queue {place.queue.name!r} holds {most:,} (maxBytes)"
    return TOO_LARGE, f"{text}: make it larger, then redrive the message"
