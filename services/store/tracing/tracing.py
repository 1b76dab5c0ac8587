"""Messages of one domain that are traced: they get their context when they are put in, and a span for what is done.

What is not chosen, and carries no context, is left as it is, octet for octet.
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
from services.store.tracing.spans import LOG, Kind, Recorder, Span, Value, begun, peer_of, readable

Begun = list[tuple[int, Span]]  # places of messages in a run, and their spans


class Tracing:
    """Of one process in one domain."""

    def __init__(self, recorder: Recorder, clock: Clock) -> None:
        self.recorder = recorder
        self.sampling = Sampling(recorder)
        self.delivery_spans = DeliverySpans(recorder, clock)

    # putting in

    def passes(self, run: list[bytes]) -> bool:
        """Nothing in this run is traced. A run is of one client: if one of it has attributes, the first has some."""
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
        """For a run that does not pass: the records as they are put in, and the spans of those that are traced.

        room: octets by which all of them together may grow, where they are put in together or not at all. carried: as
        `Messages.publish` has it.
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
            spans.append((index, begun(doing, Kind.PRODUCER, queue, parent, context, more, "send")))
            stamped[index] = record
        return stamped, spans

    def _chosen(self, run: list[bytes]) -> Iterator[tuple[int, Context | None]]:
        """Which of a run are traced, and the contexts that they bring: whoever brings one says himself whether."""
        if not run[0][0]:  # `passes` has asked
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
        """One message of the text service and its copies: one trace, in which the log and each queue has a span."""
        if self.sampling.passes(1) or not list(self.sampling.chosen(1)):
            return copies, []
        root = trace_context.fresh()
        stamped, spans = list[tuple[Queue, bytes]](), Begun()
        for index, (queue, record) in enumerate(copies):
            context = root.child()
            copy = trace_context.stamped_within(record, context, queue.spec.max_bytes)
            if copy is not None:
                more = self._more(record, client, origin)
                spans.append((index, begun("send", Kind.PRODUCER, queue, root, context, more)))
            stamped.append((queue, record if copy is None else copy))
        more = self._more(copies[0][1], client, origin)
        more |= {"messaging.destination.name": LOG, "penstock.copies": len(copies)}
        first = begun("send", Kind.PRODUCER, copies[0][0], None, root, more)
        first.name = f"send {LOG}"
        return stamped, [*spans, (len(copies), first)]

    def stored(self, spans: Begun, outcome: Refusals | StoreError | None) -> None:
        """What became of a run."""
        why: Mapping[int, StoreError] = dict(outcome) if isinstance(outcome, list) else {}
        for index, span in spans:
            error = outcome if isinstance(outcome, StoreError) else why.get(index)
            self.recorder.record(span.ended("" if error is None else error.reason))

    # taking out

    def taken(self, deliveries: list[Delivery], client: Client) -> None:
        for delivery in deliveries:
            if delivery.blob[0]:  # what is traced begins its entry
                self.delivery_spans.received(delivery, client)


def rooms_of(commit: Commit) -> dict[str, int]:
    """By how many octets what a commit puts into a queue may grow and still fit into it when that is empty; of queues
    that have a bound."""
    rooms: dict[str, int] = {}
    for part in commit.parts:
        if part.queue.spec.max_bytes:
            octets = sum(len(record) - records.HEAD.size for record in part.records)
            rooms[part.queue.qid] = rooms.get(part.queue.qid, part.queue.spec.max_bytes) - octets
    return rooms
