"""Message operations on queues, answered by callback: publish, take, settle, count.

Publishes and takes check that the queue admits the source's client (AccessDenied); operations that end a delivery do
not, as its holder was admitted before.

A source's callbacks run in the order of its requests. An operation that the gate refuses (`Gate.refuses`) is answered
before the method returns.
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
    """Message operations of one domain."""

    def __init__(self, gate: Gate, traced: Traced | None) -> None:
        """Trace operations with `traced`, if the process is traced; also those that the gate refuses."""
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
        """Append 1 to 1,000 records to the queue, in order; done([]) once all are durable at its ack level.

        After the first record that does not fit, the rest of the run is refused, too, however small; and so are later
        records of the same origin in the same call.

        Args:
            source: The connection that publishes.
            queue: Where to.
            records: Encoded by `records.encode`.
            origin: The producer: the protocol, and the peer's certificate or address.
            done: Called with (index, error) of each refused record, or with one error for all.
            holder: The reservation under which to publish (ReservationLost without it), or '?' and a name, which needs
                only that no other holder has one (QueueReserved).
            in_order: Once any ordered publish of this source is refused or has an unknown outcome, all later ones are
                refused (BehindRefused). They must all go to one domain, and under a `holder` that only this source
                uses.
            carried: Indexes of the records whose trace context is followed, if the caller decides that
                (`TracePropagation`); no other record begins a trace.

        Raises:
            ValueError: For no record or more than 1,000.
        """
        operation = Publish(records, origin, holder, done, source if in_order else None)
        has_traced = self._traced is not None and self._traced.publish(source, queue, operation, carried)
        records, done, gate = operation.records, operation.done, self._gate
        error = gate.refuses() if gate.may_refuse else None
        if in_order:
            done = operation.done = partial(_done_in_order, source, done)
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

        Args:
            source: The connection that takes.
            queue: Where from.
            want: The greatest number of messages.
            done: Called with the deliveries, perhaps none, and whether more messages are available.
            leased: Lease messages of an at-most-once queue, too, as for a transaction. Otherwise they are already
                settled (`Delivery.settled`).

        Raises:
            ValueError: For a `want` out of range.
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
        """Wrap `done` so that deliveries of an at-most-once queue are settled before it is called."""

        def taken(got: list[Delivery] | StoreError, more: bool) -> None:
            if isinstance(got, StoreError) or not got:
                done(got, more)
                return
            for d in got:
                d.settled = True
            self.settle(Source(INTERNAL_CLIENT), got, lambda error: done(error or got, more))

        return taken

    def settle(self, source: Source, deliveries: list[Delivery], done: Done | None = None) -> None:
        """Acknowledge deliveries: their messages are removed."""
        if self._traced is not None:
            done = self._traced.ends(deliveries, "settle", "settled", done)
        self._settle(source, deliveries, done)

    def _settle(self, source: Source, deliveries: list[Delivery], done: Done | None) -> None:
        queue = deliveries[0].queue
        call = self._call_for(0, 0, 0, settles=len(deliveries))
        work = call.work(source, queue, Phase.SETTLE)
        mine: list[Delivery] = []
        rest: list[Delivery] = []  # other queues' deliveries, and repeats, which must run later to be fenced
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
        """Return messages to their old places, so that they are delivered again first.

        Args:
            source: The connection that took them.
            deliveries: What to return; of any queues.
            failed: Count it towards `max_deliveries`.
            to_end: Return them to the end of their queue instead.
            error: Why it failed, for the dead letter.
            done: Called once all are returned.
        """
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
        """Move leased messages to the dead letters.

        Args:
            source: The connection that took them.
            deliveries: What to move; of any queues.
            reason: A stable label, as in docs/store.md.
            error: Text for people.
            done: Called once all are moved.
        """
        if self._traced is not None and deliveries:
            done = self._traced.reject(deliveries, reason, error, done)
        each = join_done(done, len(deliveries))
        for d in deliveries:
            call = self._call_for(0, 0, 0, settles=d.count)
            call.work(source, d.queue, Phase.SETTLE).rejects.append(Reject(d, reason, error, each))

    def note(self, source: Source, delivery: Delivery, note: str, done: Done) -> None:
        """Attach a note to leased messages for later holders; '' removes it.

        It stays until they are settled, and is kept with dead letters.

        Raises:
            ValueError: For a note of more than 200 characters or other than visible ASCII.
        """
        if not NOTE.fullmatch(note):
            raise ValueError(f"a note has up to 200 visible ASCII characters and no spaces, not {note!r}")
        refused = self._gate.refusal(source, goals=[(delivery.queue, 0)])
        if refused is not None:
            done(refused)
            return
        call = self._call_for(0, 0, 0, settles=delivery.count)
        call.work(source, delivery.queue, Phase.SETTLE).notes.append(Note(delivery, note, done))

    def bury(
        self, source: Source, queue: Queue, record: bytes, origin: str, reason: str, error: str, done: Done
    ) -> None:
        """Add a message that cannot be published to the queue's dead letters."""
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
        """Ask for the number of ready messages."""
        refused = self._gate.refusal(source, [queue])
        if refused is not None:
            done(refused)
            return
        self._call_for(0, 0, 0).work(source, queue, Phase.COUNT).counts.append(done)

    def give_back(self, deliveries: list[Delivery]) -> None:
        """Return messages whose requester is gone, without counting a failure (tmq.md 6.2)."""
        self.release(Source(INTERNAL_CLIENT), deliveries, failed=False)


def _done_in_order(source: Source, done: Published, outcome: Refusals | StoreError) -> None:
    if outcome:  # waiting publishes are removed when their call is sent (`Call.skip_stopped`)
        source.stopped = True
    done(outcome)
