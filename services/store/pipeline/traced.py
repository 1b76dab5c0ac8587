"""Tracing of a domain's operations: stamp trace contexts on published records and record spans of outcomes.

Operations call it before the gate, so that refused ones have spans, too. An untraced process records no spans.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from services.store.model.delivery import Delivery
from services.store.model.errors import OutcomeUnknown, StoreError
from services.store.model.identities import JournalNumber, RequestId
from services.store.model.operations import (
    Bury,
    Commit,
    Done,
    IdempotentPublish,
    Publish,
    Published,
    Refusals,
    Send,
    Source,
    Taken,
)
from services.store.model.queues import Queue
from services.store.model.requests import (
    Held,
    Nothing,
    Once,
    Outcome,
    Pull,
    Pulled,
    Pulls,
    Settle,
    Settled,
    Settlement,
)
from services.store.tracing.delivery_spans import Ending
from services.store.tracing.spans import Value, error_attributes
from services.store.tracing.tracing import Begun, Tracing, rooms_of


class Traced:
    """A tracer that changes operations before they are sent: their records and their callbacks."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    def publish(self, source: Source, queue: Queue, publish: Publish, carried: Sequence[int] | None) -> bool:
        """Trace a publish; return whether any of its messages is traced. carried: as in `Messages.publish`."""
        records = publish.records
        if carried is None:
            passes = not records or not source.begins_traces or self._tracing.passes(records)
        else:
            passes = not carried
        if passes:
            return False
        publish.records, spans = self._tracing.put(
            records, queue, source.client, publish.origin, carried=carried
        )
        if spans:
            publish.done = partial(self._published, spans, publish.done)
        return bool(spans)

    def _published(self, spans: Begun, done: Published, outcome: Refusals | StoreError) -> None:
        self._tracing.stored(spans, outcome)
        done(outcome)

    def bury(self, source: Source, queue: Queue, bury: Bury) -> None:
        """Trace a message that becomes a dead letter."""
        if not source.begins_traces and not bury.record[0]:  # it carries no context
            return
        bury.record, spans = self._tracing.put_one(bury.record, queue, source.client, bury.origin, "bury")
        for _, span in spans:
            span.attributes["penstock.reason"] = bury.reason
        if spans:
            bury.done = partial(self._done, spans, bury.done)

    def _done(self, spans: Begun, done: Done, error: StoreError | None) -> None:
        self._tracing.stored(spans, error)
        done(error)

    def once(self, source: Source, operation: IdempotentPublish) -> None:
        """Trace an idempotent publish."""
        record, identity = operation.record, operation.identity
        if isinstance(identity, RequestId) and not record[0]:  # not sampled by its id (`TracePropagation`)
            return
        doing = "bury" if isinstance(identity, JournalNumber) and operation.reason else "send"
        operation.record, spans = self._tracing.put_one(
            record, operation.queue, source.client, operation.origin, doing
        )
        if spans:
            operation.done = partial(self._once, spans, operation.done)

    def _once(self, spans: Begun, done: Once, outcome: Outcome | StoreError) -> None:
        if isinstance(outcome, StoreError):
            self._tracing.stored(spans, outcome)
        else:
            for _, span in spans:
                span.attributes["penstock.outcome"] = outcome.value
            self._tracing.stored(spans, None)
        done(outcome)

    def commit(self, source: Source, commit: Commit) -> bool:
        """Trace a commit; return whether any of the messages that it publishes is traced."""
        begun, ending = Begun(), Ending()
        rooms = rooms_of(commit)
        for part in commit.parts:
            may_be = part.records and (source.begins_traces or part.records[0][0])
            if may_be and not self._tracing.passes(part.records):
                qid, before = part.queue.qid, part.records
                part.records, spans = self._tracing.put(
                    before, part.queue, source.client, part.origin, room=rooms.get(qid)
                )
                if qid in rooms:
                    rooms[qid] -= sum(map(len, part.records)) - sum(map(len, before))
                begun += spans
            if part.deliveries and self._tracing.delivery_spans:
                ending += self._tracing.delivery_spans.ending(part.deliveries, "settle")
        if begun or ending:
            commit.done = partial(self._committed, begun, ending, commit.done)
        return bool(begun)

    def _committed(self, begun: Begun, ending: Ending, done: Once, outcome: Outcome | StoreError) -> None:
        """Record a commit's spans. Deliveries that a refused commit would have settled stay open."""
        error = outcome if isinstance(outcome, StoreError) else None
        goes_on = error is not None and not isinstance(error, OutcomeUnknown)
        self._tracing.delivery_spans.ended(ending, "settled", error, goes_on=goes_on)
        self._once([(0, span) for _, span in begun], done, outcome)

    def send(self, source: Source, send: Send) -> None:
        """Trace a message of the text service and its copies for queues."""
        if send.copies:
            send.copies, spans = self._tracing.send(send.copies, source.client, send.origin)
            if spans:
                send.done = partial(self._done, spans, send.done)

    def take(self, source: Source, done: Taken) -> Taken:
        """Return the callback of a take, which begins spans of traced deliveries before it calls `done`."""
        return partial(self._taken, source, done)

    def _taken(self, source: Source, done: Taken, got: list[Delivery] | StoreError, more: bool) -> None:
        if isinstance(got, list):
            self._tracing.taken(got, source.client)
        done(got, more)

    def release(
        self, deliveries: list[Delivery], failed: bool, to_end: bool, error: str, done: Done | None
    ) -> Done | None:
        """Return the callback of a return, as `ends` does."""
        more: dict[str, Value] = {"penstock.has_failed": failed, "penstock.to_end": to_end}
        return self.ends(deliveries, "release", "returned", done, more | error_attributes(error))

    def reject(self, deliveries: list[Delivery], reason: str, error: str, done: Done | None) -> Done | None:
        """Return the callback of a rejection, as `ends` does."""
        more: dict[str, Value] = {"penstock.reason": reason, **error_attributes(error)}
        return self.ends(deliveries, "reject", "rejected", done, more)

    def ends(
        self,
        deliveries: list[Delivery],
        doing: str,
        outcome: str,
        done: Done | None,
        more: dict[str, Value] | None = None,
    ) -> Done | None:
        """Return the callback of an operation that ends deliveries: `done` itself if none of them is traced."""
        delivery_spans = self._tracing.delivery_spans
        if not delivery_spans or not (ending := delivery_spans.ending(deliveries, doing, more)):
            return done

        def ended(error: StoreError | None) -> None:
            delivery_spans.ended(ending, outcome, error)
            if done is not None:
                done(error)

        return ended

    def pull(self, source: Source, pull: Pull) -> None:
        """Trace a pull by request id."""
        pull.done = partial(self._pulled, source, pull.request, pull.done)

    def _pulled(
        self, source: Source, request: bytes, done: Pulls, answer: Pulled | Nothing | StoreError
    ) -> None:
        if isinstance(answer, Pulled) and not answer.again:
            self._tracing.delivery_spans.pulled(request, answer.delivery, source.client)
        done(answer)

    def settle(self, settle: Settle) -> None:
        """Trace a settlement by request id."""
        if self._tracing.delivery_spans:
            settle.done = partial(self._settled, settle.request, time.time_ns(), settle.done)

    def _settled(
        self, request: bytes, start_ns: int, done: Settled, answer: Settlement | Held | StoreError
    ) -> None:
        """Record the end of the pull. `Held` is not the end: the settlement is then repeated."""
        if not isinstance(answer, Held):
            ending = self._tracing.delivery_spans.ending_pull(request)
            for step, _ in ending:
                step.start_ns = start_ns
            if isinstance(answer, StoreError):  # it may be repeated
                self._tracing.delivery_spans.ended(ending, "", answer, goes_on=True)
            else:
                self._tracing.delivery_spans.ended(ending, answer.value, None)
        done(answer)
