"""Carry messages from a local queue into a Penstock queue, exactly once, also after crashes (docs/sysv.md 3)."""

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
from services.sysv.kernel import MTYPE, LocalQueue, LocalQueueError, Removed, TooLarge
from services.sysv.places import Place, Places
from services.sysv.record import UNSEEN, Record
from services.sysv.settings import MAX_BODY, Mapping, format_key

log = logging.getLogger(__name__)

AnswerT = TypeVar("AnswerT")

TOO_LARGE = "too_large_for_queue"
FIRST_ROOM = 8192  # octets offered first, as the cost of a peek grows with the size of the buffer


class Outbound:
    """One mapping with direction `out`, with at most one message under way.

    The store accepts only numbers above the highest one so far, so messages must not overtake each other.
    """

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
        self._seen = ctypes.create_string_buffer(MTYPE)  # a copy of the next message
        self._stopping = asyncio.Event()
        self._origin = f"sysv {format_key(mapping.key)}"

    @property
    def current_message(self) -> str:
        """Return a description of the pending message, for error messages."""
        pending = self._journal.pending
        return "" if pending is None else f"message {pending.number} of the journal {self._journal.path}"

    def stop_taking(self) -> None:
        """Stop after the pending message; if it cannot be published, it stays in the journal."""
        self._stopping.set()

    async def run(self) -> None:
        """Publish the pending message, and then carry messages until stopped."""
        if self._journal.pending is not None:
            await self._finish(self._journal.pending, is_replay=True)
        while not self._stopping.is_set():
            record = await self._next()
            if record is not None:
                await self._finish(record, is_replay=False)

    # Receiving

    async def _next(self) -> Record | None:
        """Receive a message into the journal. Return None after a pause if there was none."""
        try:
            record = self._take()
        except Removed as error:
            self._reopen(error)
            await self._sleep(self._retry)
        except TooLarge:
            await self._make_room()
        except (LocalQueueError, JournalError) as error:
            self.condition.wait(error.reason, str(error))
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
        """Flush the journal in a thread: a slow disk must not block the heartbeats."""
        try:
            await asyncio.to_thread(self._journal.sync)
        except OSError as error:  # publish anyway: the message is safe then
            self.condition.wait(
                "no_sync", f"the journal {self._journal.path} was not flushed to the disk: {error}"
            )

    def _take(self) -> Record | None:
        """Receive the next message into the journal. Raises TooLarge if it does not fit."""
        size = self._with_room(self._peek)
        if size is not None:
            with suppress(TooLarge):  # another process received the copied one
                return self._receive(size, size, crc32(memoryview(self._seen)[: MTYPE + size]))
        elif self._local.waiting():
            return self._with_room(self._receive)
        return None

    def _with_room(self, ask: Callable[[int], AnswerT]) -> AnswerT:
        """Call with more and more room. Raises TooLarge if the journal's room is not enough."""
        room = min(FIRST_ROOM, self._journal.room)
        while True:
            try:
                return ask(room)
            except TooLarge:
                if room == self._journal.room:
                    raise
            room = min(2 * room, self._journal.room)

    def _peek(self, room: int) -> int | None:
        if len(self._seen) < MTYPE + room:
            self._seen = ctypes.create_string_buffer(MTYPE + room)
        return self._local.peek(ctypes.addressof(self._seen), room)

    def _receive(self, room: int, seen_length: int = UNSEEN, seen_crc: int = 0) -> Record | None:
        """Receive a message. Nothing must run between `msgrcv` and the receipt."""
        self._journal.plan(self._mapping.queue, self._mapping.format, room, seen_length, seen_crc)
        taken = self._local.receive(self._journal.address, room)
        return None if taken is None else self._journal.received(taken)

    async def _make_room(self) -> None:
        """Enlarge the journal: msgmax was raised."""
        room = min(2 * self._journal.room, MAX_BODY)
        try:
            if room == self._journal.room:
                raise JournalError("too_large", "the next message is larger than any that the store can hold")
            self._journal.grow(room)
        except JournalError as error:
            self.condition.wait(error.reason, str(error))
            await self._sleep(self._retry)

    def _reopen(self, error: Removed) -> None:
        try:
            self._local.open()
        except LocalQueueError as worse:
            self.condition.wait(worse.reason, str(worse))
        else:
            log.info("%s; it was opened again", error, extra={"action": "sysv_reopened"})

    # Publishing

    async def _finish(self, record: Record, *, is_replay: bool) -> None:
        """Publish a message and strike it from the journal; retry until it is durable in the store (3.4).

        After a stop, an unpublished message stays in the journal.
        """
        may_be_there = is_replay
        place: Place | None = None
        while True:
            try:
                place = place or await self._places.place_of(record)
                outcome = await self._publish(record, place)
            except StoreError as error:
                # retrying would never succeed
                if place is not None and (reason := _never_fits(error, place)):
                    place = replace(place, reason=reason[0], error=reason[1])
                    continue
                may_be_there = may_be_there or isinstance(error, OutcomeUnknown)
                self.condition.wait(error.reason, self._explain(error, record, place))
                await self._sleep(self._retry)
                if self._stopping.is_set():
                    return
                self._places.forget()  # documents may have changed
                place = None
            else:
                if outcome is Outcome.STORED or may_be_there:
                    self._done(place)
                    return
                record = await self._renew(record)

    async def _publish(self, record: Record, place: Place) -> Outcome:
        """Publish a message, or move it to the dead letters. Raises StoreError."""
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
            f"queue {record.queue!r} does not exist, and a message for it is in the journal {self._journal.path}: "
            f"create the queue, or restart with key {format_key(self._mapping.key)} mapped to another queue, "
            "which then gets the message"
        )

    def _done(self, place: Place) -> None:
        self._journal.strike()
        self._retry.reset()
        if place.reason:
            self.condition.buried(place.reason)
        else:
            self.condition.carried()

    async def _renew(self, record: Record) -> Record:
        """Rename the journal: the store has this number for another message, from a copy of this process (3.3)."""
        log.error(
            "another process uses the same name as the journal %s: it continues under a new name",
            self._journal.path,
            extra={"action": "journal_stale", "mapping": self.condition.mapping, "number": record.number},
        )
        renewed = self._journal.renew()
        await self._sync()
        return renewed

    async def _sleep(self, pause: Pause) -> None:
        """Sleep until the pause or a stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(pause.next()):
                await self._stopping.wait()


def _never_fits(error: StoreError, place: Place) -> tuple[str, str] | None:
    """Return reason and text for the dead letters if the message can never fit into its queue (3.6)."""
    if isinstance(error, MessageTooLarge):
        return error.reason, str(error)
    size, most = len(place.record) - records.HEAD.size, place.queue.spec.max_bytes
    if not isinstance(error, QueueFull) or not 0 < most < size:
        return None
    text = f"the message has {size:,} octets with its attributes, queue {place.queue.name!r} holds {most:,} (maxBytes)"
    return TOO_LARGE, f"{text}: raise the limit, then redrive the message"
