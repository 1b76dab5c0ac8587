"""The verbs of messages in queues, as calls with an answer by callback: put in, taken, settled, counted.

What puts in or takes out asks first whether the queue lets the source's client (AccessDenied); what ends a delivery
does not, as whoever has it was let in.

Callbacks are made in the order in which a source asked. An operation that the gate refuses (`Gate.refuses`) is answered
within the same step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from services.store.model.client import INTERNAL_CLIENT
from services.store.model.delivery import Delivery
from services.store.model.errors import AckLevelLost, StoreError
from services.store.model.operations import (
    MAX_MESSAGES,
    Bury,
    Counted,
    Done,
    Note,
    Phase,
    Publish,
    Published,
    Refusals,
    Reject,
    Return,
    Source,
    Take,
    Taken,
    add_ack,
    join_done,
)
from services.store.model.queues import Queue
from services.store.pipeline.gate import Gate
from services.store.pipeline.traced import Traced

NOTE = re.compile(r"[!-~]{0,200}")


class Messages:
    """Of one domain. Where the process is traced, `traced` sees each operation before the gate does."""

    def __init__(self, gate: Gate, traced: Traced | None) -> None:
        self._gate = gate
        self._traced = traced
        self._call_for = gate.call_for

    def publish(
        self,
        source: Source,
        queue: Queue,
        records: list[bytes],
        origin: str,
        done: Published,
        holder: str = "",
        *,
        in_order: bool = False,
        carried: Sequence[int] | None = None,
    ) -> None:
        """Put 1 to 1,000 records at the end of the queue, in order; done([]) once all are durable at its level.

        Behind the first that finds no room nothing of the run goes in, however small it is; nor of what others of the
        same origin put into the queue by the same call, behind it.

        holder: who has the queue reserved (ReservationLost if not), or '?' and a name, for whom it is enough that
        nobody else has (QueueReserved if somebody has).

        in_order: once something is refused for whatever reason, or its outcome is unknown, nothing behind it is put in:
        not of this run, and of no other of this source that is in order (BehindRefused). All of them go to one domain,
        and `holder` is this source's alone.

        carried: where those of the run stand that bring a context and may be traced, if whoever asks has decided for
        all of them (`TracePropagation`): no other one begins a trace.
        """
        operation = Publish(records, origin, holder, done, source if in_order else None)
        has_traced = self._traced is not None and self._traced.publish(source, queue, operation, carried)
        records, done, gate = operation.records, operation.done, self._gate
        error = gate.refuses() if gate.may_refuse else None
        if in_order:
            done = operation.done = partial(_told_in_order, source, done)
        if queue.admission is not None:
            error = error or source.refusal(queue)
        if queue.unkept:
            error = error or AckLevelLost()
        if error is not None:
            gate.tallies.of(queue).refuse_puts(error, len(records))
            done(error)
            return
        number = len(records)
        if not 1 <= number <= MAX_MESSAGES:
            raise ValueError(f"a run has 1 to {MAX_MESSAGES} records, not {number}")
        size = len(records[0]) if number == 1 else sum(map(len, records))
        call = self._call_for(number, size, 0)
        if in_order:
            call.keep_in_order(source, queue)
        call.work(source, queue, Phase.PUBLISH).publishes.append(operation)
        if has_traced:
            gate.waiting.packs_traced()

    def take(self, source: Source, queue: Queue, want: int, done: Taken, *, leased: bool = False) -> None:
        """Lease up to `want` messages (1 to 1,000) to this process; done(deliveries, more).

        Of a queue that delivers at most once they are settled already (`Delivery.settled`), unless leased=True asks
        for a lease all the same, as a transaction does.
        """
        if self._traced is not None:
            done = self._traced.take(source, done)
        gate = self._gate
        error = gate.refuses() if gate.may_refuse else None
        if queue.admission is not None:
            error = error or source.refusal(queue)
        if error is not None:
            gate.tallies.of(queue).refuse(error, 1)
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
            self.settle(Source(INTERNAL_CLIENT), got, lambda error: done(error or got, more))

        return taken

    def settle(self, source: Source, deliveries: list[Delivery], done: Done | None = None) -> None:
        """Acknowledge: the messages are gone for good."""
        if self._traced is not None:
            done = self._traced.ends(deliveries, "settle", "settled", done)
        self._settle(source, deliveries, done)

    def _settle(self, source: Source, deliveries: list[Delivery], done: Done | None) -> None:
        queue = deliveries[0].queue
        call = self._call_for(0, 0, 0, settles=len(deliveries))
        work = call.work(source, queue, Phase.SETTLE)
        mine: list[Delivery] = []
        rest: list[
            Delivery
        ] = []  # of other queues, or once more what is being settled: that is fenced, so it waits
        for d in deliveries:
            (mine if d.queue is queue and add_ack(work.acks, d) else rest).append(d)
        done = join_done(done, 2 if rest else 1)
        if done is not None:
            work.acked.append((mine, done))
        if rest:
            call.next_round(source)
            self._settle(source, rest, done)

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
        """Return messages to their old places (or to the end). failed=True counts towards max_deliveries."""
        if self._traced is not None and deliveries:
            done = self._traced.release(deliveries, failed, to_end, error, done)
        each = join_done(done, len(deliveries))
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
        """Move leased messages to the dead letters."""
        if self._traced is not None and deliveries:
            done = self._traced.reject(deliveries, reason, error, done)
        each = join_done(done, len(deliveries))
        for d in deliveries:
            call = self._call_for(0, 0, 0, settles=d.count)
            call.work(source, d.queue, Phase.SETTLE).rejects.append(Reject(d, reason, error, each))

    def note(self, source: Source, delivery: Delivery, note: str, done: Done) -> None:
        """Write something beside leased messages, '' to take it away: a later holder finds it.

        It stays until they are settled, and goes with them to the dead letters. ValueError for a note of more than 200
        characters, or with others than visible ones of ASCII.
        """
        if not NOTE.fullmatch(note):
            raise ValueError(f"a note has up to 200 visible characters and no spaces, unlike {note!r}")
        refused = self._gate.refusal(source, goals=[(delivery.queue, 0)])
        if refused is not None:
            done(refused)
            return
        call = self._call_for(0, 0, 0, settles=delivery.count)
        call.work(source, delivery.queue, Phase.SETTLE).notes.append(Note(delivery, note, done))

    def bury(
        self, source: Source, queue: Queue, record: bytes, origin: str, reason: str, error: str, done: Done
    ) -> None:
        """Put a message that cannot be inserted straight into the queue's dead letters."""
        operation = Bury(record, origin, reason, error, done)
        if self._traced is not None:
            self._traced.bury(source, queue, operation)
        refused = self._gate.refusal(source, goals=[(queue, 0)])
        if refused is not None:
            operation.done(refused)
            return
        call = self._call_for(1, len(operation.record), 0)
        call.work(source, queue, Phase.SETTLE).buries.append(operation)

    def count(self, source: Source, queue: Queue, done: Counted) -> None:
        """Ask how many messages are ready for anybody."""
        refused = self._gate.refusal(source, [queue])
        if refused is not None:
            done(refused)
            return
        self._call_for(0, 0, 0).work(source, queue, Phase.COUNT).counts.append(done)

    def give_back(self, deliveries: list[Delivery]) -> None:
        """Return messages whose asker is gone, at once, unharmed (tmq.md 6.2)."""
        self.release(Source(INTERNAL_CLIENT), deliveries, failed=False)


def _told_in_order(source: Source, done: Published, outcome: Refusals | StoreError) -> None:
    """What waits behind it is looked at when its own call goes out (`Call.leave_out_stopped`)."""
    if outcome:
        source.stopped = True
    done(outcome)
