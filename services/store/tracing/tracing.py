"""Trace messages of one domain: stamp contexts on published records and record spans.

Records that are not sampled and carry no context stay unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from services.store.model import records, trace_context
from services.store.model.client import Client
from services.store.model.clock import Clock
from services.store.model.delivery import Delivery
from services.store.model.errors import StoreError
from services.store.model.operations import Commit, Refusals
from services.store.model.queues import Queue
from services.store.model.trace_context import Context
from services.store.tracing.delivery_spans import DeliverySpans
from services.store.tracing.sampling import Sampling
from services.store.tracing.spans import LOG, Kind, Recorder, Span, Value, peer_of, readable, start_span

Begun = list[tuple[int, Span]]  # indexes of messages in a run, and their spans


class Tracing:
    """Tracing of one process in one domain."""

    def __init__(self, recorder: Recorder, clock: Clock) -> None:
        self.recorder = recorder
        self.sampling = Sampling(recorder)
        self.delivery_spans = DeliverySpans(recorder, clock)

    def passes(self, run: list[bytes]) -> bool:
        """Return whether no record is traced. All records of a run, which has one client, have attributes or none."""
        return not run[0][0] and self.sampling.passes(len(run))

    def put(
        self,
        run: list[bytes],
        queue: Queue,
        client: Client,
        origin: str,
        doing: str = "send",
        room: int | None = None,
        carried: Sequence[int] | None = None,
    ) -> tuple[list[bytes], Begun]:
        """Stamp contexts on a run that does not pass; return the records and the spans of the traced ones.

        room: octets by which the run may grow, if it is published all or nothing. carried: as in `Messages.publish`.
        """
        stamped, spans = list(run), Begun()
        if carried is None:
            chosen = self._chosen(run)
        else:
            chosen = ((index, trace_context.of_record(run[index])) for index in carried)
        for index, parent in chosen:
            context = trace_context.fresh() if parent is None else parent.child()
            record = trace_context.stamped_within(run[index], context, queue.spec.max_bytes)
            more_octets = 0 if record is None else len(record) - len(run[index])
            if record is None or (room is not None and more_octets > room):
                continue
            room = None if room is None else room - more_octets
            more = self._more(run[index], client, origin, len(run))
            spans.append((index, start_span(doing, Kind.PRODUCER, queue, parent, context, more, "send")))
            stamped[index] = record
        return stamped, spans

    def _chosen(self, run: list[bytes]) -> Iterator[tuple[int, Context | None]]:
        """Yield indexes and carried contexts of traced records. A carried context decides for its record."""
        if not run[0][0]:  # `passes` has drawn
            yield from ((index, None) for index in sorted(self.sampling.chosen(len(run))))
            return
        parents = [trace_context.of_record(record) for record in run]
        free = [index for index, parent in enumerate(parents) if parent is None]
        chosen = set[int]()
        if free and not self.sampling.passes(len(free)):
            chosen = {free[place] for place in self.sampling.chosen(len(free))}
        for index, parent in enumerate(parents):
            if index in chosen or (parent is not None and parent.is_sampled and self.recorder.follow()):
                yield index, parent

    def put_one(
        self, record: bytes, queue: Queue, client: Client, origin: str, doing: str = "send"
    ) -> tuple[bytes, Begun]:
        """Stamp a context on one record if it is traced; return it and its span, if any."""
        run = [record]
        if self.passes(run):
            return record, []
        (stamped,), spans = self.put(run, queue, client, origin, doing)
        return stamped, spans

    @staticmethod
    def _more(record: bytes, client: Client, origin: str, number: int = 1) -> dict[str, Value]:
        more: dict[str, Value] = {"messaging.message.body.size": records.body_length(record)}
        if number > 1:
            more["messaging.batch.message_count"] = number
        if origin:
            more["penstock.origin"] = readable(origin)
        return more | peer_of(client)

    def send(
        self, copies: list[tuple[Queue, bytes]], client: Client, origin: str
    ) -> tuple[list[tuple[Queue, bytes]], Begun]:
        """Trace one message of the text service and its copies: one trace with a span for the log and each queue."""
        if self.sampling.passes(1) or not list(self.sampling.chosen(1)):
            return copies, []
        root = trace_context.fresh()
        stamped, spans = list[tuple[Queue, bytes]](), Begun()
        for index, (queue, record) in enumerate(copies):
            context = root.child()
            copy = trace_context.stamped_within(record, context, queue.spec.max_bytes)
            if copy is not None:
                more = self._more(record, client, origin)
                spans.append((index, start_span("send", Kind.PRODUCER, queue, root, context, more)))
            stamped.append((queue, record if copy is None else copy))
        more = self._more(copies[0][1], client, origin)
        more |= {"messaging.destination.name": LOG, "penstock.copies": len(copies)}
        first = start_span("send", Kind.PRODUCER, copies[0][0], None, root, more)
        first.name = f"send {LOG}"
        return stamped, [*spans, (len(copies), first)]

    def stored(self, spans: Begun, outcome: Refusals | StoreError | None) -> None:
        """Record the spans of a run with its outcome."""
        why: Mapping[int, StoreError] = dict(outcome) if isinstance(outcome, list) else {}
        for index, span in spans:
            error = outcome if isinstance(outcome, StoreError) else why.get(index)
            self.recorder.record(span.end("" if error is None else error.reason))

    def taken(self, deliveries: list[Delivery], client: Client) -> None:
        """Begin the spans of traced deliveries."""
        for delivery in deliveries:
            if delivery.blob[0]:  # traced records begin their entries
                self.delivery_spans.received(delivery, client)


def rooms_of(commit: Commit) -> dict[str, int]:
    """Return by how many octets a commit's records for a bounded queue, by its id, may grow and still fit into it."""
    rooms: dict[str, int] = {}
    for part in commit.parts:
        if part.queue.spec.max_bytes:
            octets = sum(len(record) - records.HEAD.size for record in part.records)
            rooms[part.queue.qid] = rooms.get(part.queue.qid, part.queue.spec.max_bytes) - octets
    return rooms
