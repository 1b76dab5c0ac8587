"""The pipe of a process that is traced: the same verbs, and spans for the messages that are chosen.

A process that is not traced has a plain `Pipe`: what this costs, it does not pay.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from services.store.model.delivery import Delivery
from services.store.model.errors import OutcomeUnknown, StoreError
from services.store.model.operations import Commit, Done, Published, Refusals, Send, Source, Taken
from services.store.model.queues import Queue
from services.store.model.requests import (
    Held,
    Nothing,
    Once,
    Outcome,
    Pull,
    Pulled,
    Pulls,
    Push,
    Request,
    Settle,
    Settled,
    Settlement,
)
from services.store.pipeline.pipe import Pipe
from services.store.tracing.delivery_spans import Ending
from services.store.tracing.spans import Value, told_why
from services.store.tracing.tracing import Begun, Tracing, rooms_of


class TracedPipe(Pipe):
    """`tracing` is set before anything is asked of it."""

    tracing: Tracing

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
        if carried is None:
            passes = not records or not source.begins_traces or self.tracing.passes(records)
        else:
            passes = not carried
        if passes:
            super().publish(source, queue, records, origin, done, holder, in_order=in_order)
            return
        records, spans = self.tracing.put(records, queue, source.client, origin, carried=carried)
        if spans:
            done = partial(self._published, spans, done)
        super().publish(source, queue, records, origin, done, holder, in_order=in_order)
        if spans:
            self.waiting.packs_traced()

    def _published(self, spans: Begun, done: Published, outcome: Refusals | StoreError) -> None:
        self.tracing.stored(spans, outcome)
        done(outcome)

    def bury(
        self, source: Source, queue: Queue, record: bytes, origin: str, reason: str, error: str, done: Done
    ) -> None:
        spans = Begun()
        if source.begins_traces or record[0]:  # else it brings no context
            record, spans = self.tracing.put_one(record, queue, source.client, origin, "bury")
        for _, span in spans:
            span.attributes["penstock.reason"] = reason
        told = partial(self._done, spans, done) if spans else done
        super().bury(source, queue, record, origin, reason, error, told)

    def _done(self, spans: Begun, done: Done, error: StoreError | None) -> None:
        self.tracing.stored(spans, error)
        done(error)

    def _once(self, spans: Begun, done: Once, told: Outcome | StoreError) -> None:
        if isinstance(told, StoreError):
            self.tracing.stored(spans, told)
        else:
            for _, span in spans:
                span.attributes["penstock.outcome"] = told.value
            self.tracing.stored(spans, None)
        done(told)

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
        doing = "bury" if reason else "send"
        record, spans = self.tracing.put_one(record, queue, source.client, origin, doing)
        told = partial(self._once, spans, done) if spans else done
        super().publish_numbered(
            source, journal, number, queue, record, origin, told, reason=reason, error=error
        )

    def publish_watched(
        self, source: Source, token: str, queue: Queue, record: bytes, origin: str, keep_ms: int, done: Once
    ) -> None:
        record, spans = self.tracing.put_one(record, queue, source.client, origin)
        told = partial(self._once, spans, done) if spans else done
        super().publish_watched(source, token, queue, record, origin, keep_ms, told)

    def _commit(self, source: Source, commit: Commit) -> None:
        """Settles and publishes: of `commit` and `publish_once`."""
        begun, ending = Begun(), Ending()
        rooms = rooms_of(commit)
        for part in commit.parts:
            may_be = part.records and (source.begins_traces or part.records[0][0])
            if may_be and not self.tracing.passes(part.records):
                qid, before = part.queue.qid, part.records
                part.records, spans = self.tracing.put(
                    before, part.queue, source.client, part.origin, room=rooms.get(qid)
                )
                if qid in rooms:
                    rooms[qid] -= sum(map(len, part.records)) - sum(map(len, before))
                begun += spans
            if part.deliveries and self.tracing.handed_out:
                ending += self.tracing.handed_out.ending(part.deliveries, "settle")
        if begun or ending:
            commit.done = partial(self._committed, begun, ending, commit.done)
        super()._commit(source, commit)
        if begun:
            self.waiting.packs_traced()

    def _committed(self, begun: Begun, ending: Ending, done: Once, told: Outcome | StoreError) -> None:
        """What a refused one would have settled is still out, until whoever has it gives it back."""
        error = told if isinstance(told, StoreError) else None
        goes_on = error is not None and not isinstance(error, OutcomeUnknown)
        self.tracing.handed_out.ended(ending, "settled", error, goes_on=goes_on)
        self._once([(0, span) for _, span in begun], done, told)

    def send(self, source: Source, send: Send, replicas: int) -> None:
        if send.copies:
            send.copies, spans = self.tracing.send(send.copies, source.client, send.origin)
            if spans:
                send.done = partial(self._done, spans, send.done)
        super().send(source, send, replicas)

    # taking out

    def take(self, source: Source, queue: Queue, want: int, done: Taken, *, leased: bool = False) -> None:
        super().take(source, queue, want, partial(self._taken, source, done), leased=leased)

    def _taken(self, source: Source, done: Taken, got: list[Delivery] | StoreError, more: bool) -> None:
        if isinstance(got, list):
            self.tracing.taken(got, source.client)
        done(got, more)

    def settle(self, source: Source, deliveries: list[Delivery], done: Done | None = None) -> None:
        super().settle(source, deliveries, self._ends(deliveries, "settle", "settled", done))

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
        if deliveries:
            more: dict[str, Value] = {"penstock.has_failed": failed, "penstock.to_end": to_end}
            more |= told_why(error)
            done = self._ends(deliveries, "release", "returned", done, more)
        super().release(source, deliveries, failed=failed, to_end=to_end, error=error, done=done)

    def reject(
        self,
        source: Source,
        deliveries: list[Delivery],
        reason: str,
        error: str = "",
        done: Done | None = None,
    ) -> None:
        if deliveries:
            more: dict[str, Value] = {"penstock.reason": reason, **told_why(error)}
            done = self._ends(deliveries, "reject", "rejected", done, more)
        super().reject(source, deliveries, reason, error, done)

    def _ends(
        self,
        deliveries: list[Delivery],
        doing: str,
        outcome: str,
        done: Done | None,
        more: dict[str, Value] | None = None,
    ) -> Done | None:
        """What is to be told of it: the same, where nothing of these deliveries is traced."""
        handed_out = self.tracing.handed_out
        if not handed_out or not (ending := handed_out.ending(deliveries, doing, more)):
            return done

        def ended(error: StoreError | None) -> None:
            handed_out.ended(ending, outcome, error)
            if done is not None:
                done(error)

        return ended

    # requests of a ring

    def _ask(self, source: Source, request: Request, size: int) -> None:
        match request:
            case Push() if request.record[0]:  # its id has decided (`hops`)
                request.record, spans = self.tracing.put_one(
                    request.record, request.queue, source.client, request.origin
                )
                if spans:
                    request.done = partial(self._once, spans, request.done)
            case Pull():
                request.done = partial(self._pulled, source, request.request, request.done)
            case Settle() if self.tracing.handed_out:
                request.done = partial(self._settled, request.request, time.time_ns(), request.done)
        super()._ask(source, request, size)

    def _pulled(
        self, source: Source, request: bytes, done: Pulls, told: Pulled | Nothing | StoreError
    ) -> None:
        if isinstance(told, Pulled) and not told.again:
            self.tracing.handed_out.pulled(request, told.delivery, source.client)
        done(told)

    def _settled(
        self, request: bytes, start_ns: int, done: Settled, told: Settlement | Held | StoreError
    ) -> None:
        """Held: the verb asks once more, which is told here, too."""
        if not isinstance(told, Held):
            ending = self.tracing.handed_out.ending_pull(request)
            for step, _ in ending:
                step.start_ns = start_ns
            if isinstance(told, StoreError):  # whoever asked may repeat it
                self.tracing.handed_out.ended(ending, "", told, goes_on=True)
            else:
                self.tracing.handed_out.ended(ending, told.value, None)
        done(told)
