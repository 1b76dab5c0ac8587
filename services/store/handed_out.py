"""Traced messages that were given out: each has a span from when it came until it is settled, returned or rejected."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from services.store import records, trace_context
from services.store.client import Client
from services.store.delivery import Delivery
from services.store.errors import StoreError
from services.store.queues import Queue
from services.store.spans import Kind, Recorder, Span, Value, begun, peer_of
from services.store.trace_context import Context

MOST_OPEN = 10_000  # deliveries; beyond it the oldest end without anybody's knowing their outcome
NS_PER_MS = 1_000_000

Place = tuple[str, bytes, bytes]  # queue, lot, entry
Ending = list[tuple[Span, Span]]  # what is being done with a delivery, and the delivery


class HandedOut:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[Place, dict[int, tuple[Queue, Span]]] = {}  # by position; oldest first
        self._pulls: dict[bytes, Delivery] = {}  # by the id of the request that leased them

    def __bool__(self) -> bool:
        return bool(self._open)

    def received(self, delivery: Delivery, client: Client, links: Sequence[Context] = ()) -> None:
        """Somebody was given it. One that is settled already has had its end."""
        for index, record in enumerate(delivery.records()):
            parent = trace_context.of_record(record) if record[0] else None
            if parent is None or not parent.is_sampled or not self._recorder.admit():
                continue
            span = self._receive(delivery, record, parent, client)
            span.links += links
            if delivery.settled:
                span.attributes["penstock.outcome"] = "settled"
                self._recorder.record(span.ended())
                continue
            place = (delivery.queue.qid, delivery.lot, delivery.entry)
            self._open.setdefault(place, {})[delivery.start + index] = (delivery.queue, span)
        while len(self._open) > MOST_OPEN:
            self._forget(next(iter(self._open)))

    def _receive(self, delivery: Delivery, record: bytes, parent: Context, client: Client) -> Span:
        more: dict[str, Value] = {
            "messaging.message.body.size": records.body_length(record),
            "penstock.acquired": delivery.acquired,
            "penstock.failed": delivery.failed,
            "penstock.origin": delivery.origin,
            "penstock.wait_ms": max(0, time.time_ns() // NS_PER_MS - delivery.enqueued_ms),
            **peer_of(client),
        }
        if delivery.count > 1:
            more["messaging.batch.message_count"] = delivery.count
        return begun("receive", Kind.CONSUMER, delivery.queue, parent, parent.child(), more)

    def ending(
        self, deliveries: Iterable[Delivery], doing: str, more: dict[str, Value] | None = None
    ) -> Ending:
        """Something is being done that ends these deliveries: what of them is traced, taken out."""
        found = Ending()
        for d in deliveries:
            place = (d.queue.qid, d.lot, d.entry)
            spans = self._open.get(place)
            if spans is None:
                continue
            for position in [p for p in spans if d.start <= p < d.start + d.count]:
                queue, span = spans.pop(position)
                step = begun(
                    doing, Kind.CLIENT, queue, span.context, span.context.child(), more or {}, "settle"
                )
                found.append((step, span))
            if not spans:
                del self._open[place]
        return found

    def ended(self, ending: Ending, outcome: str, error: StoreError | None) -> None:
        """outcome: what became of the message, if the store did as it was asked."""
        reason = "" if error is None else error.reason
        for step, span in ending:
            step.ended(reason)
            span.attributes["penstock.outcome"] = "unknown" if reason else outcome
            self._recorder.record(step)
            self._recorder.record(span.ended(reason, step.end_ns))

    def parents(self, delivery: Delivery) -> list[Context]:
        """The spans of a delivery that are open, without ending them."""
        spans = self._open.get((delivery.queue.qid, delivery.lot, delivery.entry), {})
        return [
            span.context
            for p, (_, span) in spans.items()
            if delivery.start <= p < delivery.start + delivery.count
        ]

    # by the request that leased it: whoever settles it names that

    def pulled(self, request: bytes, delivery: Delivery, client: Client) -> None:
        if delivery.blob[0]:
            hop = trace_context.hop_of_request(request)
            sampled = hop.is_sampled(self._recorder.ratio)
            self.received(delivery, client, [hop.context] if sampled else [])
            if (delivery.queue.qid, delivery.lot, delivery.entry) in self._open:
                self._pulls[request] = delivery
                while len(self._pulls) > MOST_OPEN:
                    del self._pulls[next(iter(self._pulls))]

    def ending_pull(self, request: bytes) -> Ending:
        delivery = self._pulls.pop(request, None)
        return [] if delivery is None else self.ending([delivery], "settle")

    def close(self) -> None:
        """What is still out ends here: nobody will hear of it any more."""
        for place in list(self._open):
            self._forget(place)

    def _forget(self, place: Place) -> None:
        for _, span in self._open.pop(place).values():
            span.attributes["penstock.outcome"] = "unknown"
            self._recorder.record(span.ended())
