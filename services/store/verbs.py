"""The verbs of the store, as calls with an answer by callback; `Pipe` carries them out.

Callbacks are made in the order in which a source asked. An operation of a pipe that refuses (`Pipe.refuses`) is
answered within the same step.
"""

from __future__ import annotations

import re

from services.store.delivery import Delivery
from services.store.errors import AckLevelLost, DomainMismatch, StoreError
from services.store.keys import DomainKeys
from services.store.operations import (
    MAX_MESSAGES,
    Bury,
    Commit,
    Counted,
    Done,
    Note,
    Numbered,
    Once,
    Outcome,
    Part,
    Phase,
    Placed,
    Publish,
    Published,
    Reject,
    Return,
    Send,
    Source,
    Take,
    Taken,
    add_ack,
    together,
)
from services.store.queues import Queue
from services.store.waiting import Waiting

NOTE = re.compile(r"[!-~]{0,200}")
MAX_NUMBER = 1 << 53  # Lua's numbers are exact up to here
KEEP_TRANSACTIONS_MS = 24 * 3600 * 1000  # how long an applied transaction id is remembered


def _error(told: Outcome | StoreError) -> StoreError | None:
    return told if isinstance(told, StoreError) else None


class Verbs:
    def __init__(self, keys: DomainKeys) -> None:
        self.keys = keys
        self.waiting = Waiting(keys, self.count_refusal)
        self._call_for = self.waiting.call_for
        self._may_refuse = True  # False: `refuses` would answer None, so nobody asks

    def refuses(self) -> StoreError | None:
        raise NotImplementedError

    def count_refusal(self, error: StoreError, number: int = 1) -> None:
        raise NotImplementedError

    def _refusal(self, *goals: Queue) -> StoreError | None:
        """Why nothing can be done now, or nothing be put into one of the goals."""
        error = self.refuses()
        if error is None and any(queue.unkept for queue in goals):
            error = AckLevelLost()
        if error is not None:
            self.count_refusal(error)
        return error

    def publish(
        self,
        source: Source,
        queue: Queue,
        records: list[bytes],
        origin: str,
        done: Published,
        holder: str = "",
    ) -> None:
        """Puts 1 to 1,000 records at the end of the queue, in order; done([]) once all are durable at its level.

        holder: who has the queue reserved (ReservationLost if not), or '?' and a name, for whom it is enough that
        nobody else has (QueueReserved if somebody has).
        """
        error = self.refuses() if self._may_refuse else None
        if queue.unkept:
            error = error or AckLevelLost()
        if error is not None:
            self.count_refusal(error, len(records))
            done(error)
            return
        number = len(records)
        if not 1 <= number <= MAX_MESSAGES:
            raise ValueError(f"a run has 1 to {MAX_MESSAGES} records, not {number}")
        size = len(records[0]) if number == 1 else sum(map(len, records))
        call = self._call_for(number, size, 0)
        call.work(source, queue, Phase.PUBLISH).publishes.append(Publish(records, origin, holder, done))

    def take(self, source: Source, queue: Queue, want: int, done: Taken, *, leased: bool = False) -> None:
        """Leases up to `want` messages (1 to 1,000) to this process; done(deliveries, more).

        Of a queue that delivers at most once they are settled already (`Delivery.settled`), unless leased=True asks
        for a lease all the same, as a transaction does.
        """
        error = self.refuses() if self._may_refuse else None
        if error is not None:
            self.count_refusal(error)
            done(error, False)
            return
        if not 1 <= want <= MAX_MESSAGES:
            raise ValueError(f"a take wants 1 to {MAX_MESSAGES} messages, not {want}")
        if queue.at_most_once and not leased:
            done = self._settled_first(queue, done)
        call = self._call_for(0, 0, want)
        call.work(source, queue, Phase.TAKE).takes.append(Take(want, done))

    def _settled_first(self, queue: Queue, done: Taken) -> Taken:
        """At most once: what was taken is settled before anybody sees it."""

        def taken(got: list[Delivery] | StoreError, more: bool) -> None:
            if isinstance(got, StoreError) or not got:
                done(got, more)
                return
            for d in got:
                d.settled = True
            self.settle(Source(), got, lambda error: done(error or got, more))

        return taken

    def settle(self, source: Source, deliveries: list[Delivery], done: Done | None = None) -> None:
        """Acknowledges: the messages are gone for good."""
        queue = deliveries[0].queue
        call = self._call_for(0, 0, 0, settles=len(deliveries))
        work = call.work(source, queue, Phase.SETTLE)
        mine: list[Delivery] = []
        rest: list[
            Delivery
        ] = []  # of other queues, or once more what is being settled: that is fenced, so it waits
        for d in deliveries:
            (mine if d.queue is queue and add_ack(work.acks, d) else rest).append(d)
        done = together(done, 2 if rest else 1)
        if done is not None:
            work.acked.append((mine, done))
        if rest:
            call.next_round(source)
            self.settle(source, rest, done)

    def release(
        self,
        source: Source,
        deliveries: list[Delivery],
        *,
        failed: bool,
        to_end: bool = False,
        error: str = "",
        done: Done | None = None,
    ) -> None:
        """Returns messages to their old places (or to the end). failed=True counts towards max_deliveries."""
        each = together(done, len(deliveries))
        for d in deliveries:
            call = self._call_for(0, 0, 0, settles=d.count)
            call.work(source, d.queue, Phase.SETTLE).returns.append(Return(d, failed, to_end, error, each))

    def reject(
        self,
        source: Source,
        deliveries: list[Delivery],
        reason: str,
        error: str = "",
        done: Done | None = None,
    ) -> None:
        """Moves leased messages to the dead letters."""
        each = together(done, len(deliveries))
        for d in deliveries:
            call = self._call_for(0, 0, 0, settles=d.count)
            call.work(source, d.queue, Phase.SETTLE).rejects.append(Reject(d, reason, error, each))

    def note(self, source: Source, delivery: Delivery, note: str, done: Done) -> None:
        """Writes something beside leased messages, '' to take it away: whoever gets them later finds it.

        It stays until they are settled, and goes with them to the dead letters. ValueError for a note of more than 200
        characters, or with others than visible ones of ASCII.
        """
        if not NOTE.fullmatch(note):
            raise ValueError(f"a note has up to 200 visible characters and no spaces, unlike {note!r}")
        refused = self._refusal(delivery.queue)
        if refused is not None:
            done(refused)
            return
        call = self._call_for(0, 0, 0, settles=delivery.count)
        call.work(source, delivery.queue, Phase.SETTLE).notes.append(Note(delivery, note, done))

    def bury(
        self, source: Source, queue: Queue, record: bytes, origin: str, reason: str, error: str, done: Done
    ) -> None:
        """Puts a message that cannot be inserted straight into the queue's dead letters."""
        refused = self._refusal(queue)
        if refused is not None:
            done(refused)
            return
        call = self._call_for(1, len(record), 0)
        call.work(source, queue, Phase.SETTLE).buries.append(Bury(record, origin, reason, error, done))

    def count(self, source: Source, queue: Queue, done: Counted) -> None:
        """How many messages are ready for anybody."""
        refused = self._refusal()
        if refused is not None:
            done(refused)
            return
        self._call_for(0, 0, 0).work(source, queue, Phase.COUNT).counts.append(done)

    def commit(
        self,
        source: Source,
        identifier: str,
        parts: list[Part],
        done: Done,
        keep_ms: int = KEEP_TRANSACTIONS_MS,
        digest: str = "",
    ) -> None:
        """Settles and publishes over several queues, all or nothing; an identifier is applied once, ever.

        With a digest, an identifier that was applied with another one is answered BatchDiffers.

        Answers LeaseLost, QueueUnknown, QueueFull, QueuePaused or StoreFull when one part cannot be done: then
        nothing was. Raises DomainMismatch for queues of another domain.
        """
        self._commit(source, Commit(identifier, parts, keep_ms, digest, lambda told: done(_error(told))))

    def publish_once(
        self,
        source: Source,
        identifier: str,
        queue: Queue,
        record: bytes,
        origin: str,
        holder: str,
        digest: str,
        keep_ms: int,
        done: Once,
    ) -> None:
        """Puts one record in under an identifier, which is remembered for so long: done(STORED), or AGAIN if it was.

        It is a commit, and shares its identifiers: begin them with a word of your own. holder as in `publish`; digest
        as in `commit`. Answers BatchDiffers, QueueUnknown, QueueFull, ReservationLost, ...: nothing was stored.
        """
        parts = [Part(queue, [], [record], origin, holder)]
        self._commit(source, Commit(identifier, parts, keep_ms, digest, done))

    def publish_numbered(
        self,
        source: Source,
        journal: str,
        number: int,
        queue: Queue,
        record: bytes,
        origin: str,
        done: Once,
        *,
        reason: str = "",
        error: str = "",
    ) -> None:
        """Puts one record in under a number of its journal: done(STORED), or AGAIN if the journal was as far before.

        Numbers begin with 1 and may have gaps; whoever has several under way makes sure that none is refused before a
        higher one is stored. With a reason the record goes to the queue's dead letters instead, with the error.
        """
        if not 1 <= number <= MAX_NUMBER:
            raise ValueError(f"numbers of a journal are from 1 to {MAX_NUMBER}, unlike {number}")
        refused = self._refusal(queue)
        if refused is not None:
            done(refused)
            return
        call = self._call_for(1, len(record), 0)
        operation = Numbered(journal, number, queue, record, origin, reason, error, done)
        call.place(source, Phase.COMMIT).commits.append(operation)
        call.touch(queue)

    def _commit(self, source: Source, commit: Commit) -> None:
        parts = commit.parts
        refused = self._refusal(*(part.queue for part in parts if part.records))
        if refused is not None:
            commit.done(refused)
            return
        if any(part.queue.domain != self.keys.domain for part in parts):
            raise DomainMismatch
        size = sum(len(record) for part in parts for record in part.records)
        call = self._call_for(sum(len(part.records) for part in parts), size, 0, len(parts))
        call.place(source, Phase.COMMIT).commits.append(commit)
        for part in parts:
            call.touch(part.queue)

    def send(self, source: Source, send: Send, replicas: int) -> None:
        """Appends to the log: all of it, and all copies, or nothing. BindingsChanged: make it anew."""
        error = self.refuses() if self._may_refuse else None
        if error is not None:
            self.count_refusal(error, send.count)
            send.done(error)
            return
        copies = send.copies
        messages = max(
            send.count, len(copies)
        )  # not all in one call: the next gathers while the store works on one
        call = self._call_for(messages, len(send.block), 0, len(copies))
        call.place(source, Phase.PUBLISH).sends.append(send)
        call.replicas = max(call.replicas, replicas)
        for queue, _ in copies:
            call.touch(queue)

    def head(self, source: Source, placed: Placed) -> None:
        """The place behind everything that the log holds now."""
        refused = self._refusal()
        if refused is not None:
            placed(refused)
            return
        self._call_for(0, 0, 0).place(source, Phase.COUNT).heads.append(placed)
