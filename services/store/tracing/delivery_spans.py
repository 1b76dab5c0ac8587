"""Traced messages that were given out: each has a span from when it came until it is settled, returned or rejected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.store.model import records, trace_context
from services.store.model.client import Client
from services.store.model.clock import Clock
from services.store.model.delivery import Delivery
from services.store.model.errors import StoreError
from services.store.model.queues import Queue
from services.store.model.trace_context import Context
from services.store.tracing.spans import Kind, Recorder, Span, Value, begun, peer_of

MOST_OPEN = 10_000  # deliveries; beyond it the oldest end without anybody's knowing their outcome
NS_PER_MS = 1_000_000

Place = tuple[str, bytes, bytes]  # queue, lot, entry


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """One message that is out, and its span."""

    place: Place
    position: int
    queue: Queue
    span: Span
    request: bytes  # that leased it, b'' if none did


Ending = list[tuple[Span, Given]]  # what is being done with a message that is out


class DeliverySpans:
    def __init__(self, recorder: Recorder, clock: Clock) -> None:
        self._recorder = recorder
        self.clock = clock
        self._open: dict[Place, dict[int, Given]] = {}  # by position; oldest first
        self._pulls: dict[bytes, Given] = {}  # those of them that a request leased, by its id

    def __bool__(self) -> bool:
        return bool(self._open)

    def received(
        self, delivery: Delivery, client: Client, links: Sequence[Context] = (), request: bytes = b""
    ) -> None:
        """Somebody was given it. One that is settled already has had its end."""
        for index, record in enumerate(delivery.records()):
            parent = trace_context.of_record(record) if record[0] else None
            if parent is None or not parent.is_sampled or not self._recorder.follow():
                continue
            span = self._receive(delivery, record, parent, client)
            span.links += links
            if delivery.settled:
                span.attributes["penstock.outcome"] = "settled"
                self._recorder.record(span.ended())
                continue
            place, position = (delivery.queue.qid, delivery.lot, delivery.entry), delivery.start + index
            given = Given(place, position, delivery.queue, span, request)
            self._open.setdefault(place, {})[position] = given
            if request:
                self._pulls[request] = given
        while len(self._open) > MOST_OPEN:
            self._forget(next(iter(self._open)))

    def _receive(self, delivery: Delivery, record: bytes, parent: Context, client: Client) -> Span:
        more: dict[str, Value] = {
            "messaging.message.body.size": records.body_length(record),
            "penstock.acquired": delivery.acquired,
            "penstock.failed": delivery.failed,
            "penstock.origin": delivery.origin,
            "penstock.wait_ms": round(self.clock.age_ms(delivery.enqueued_ms)),
            **peer_of(client),
        }
        if delivery.count > 1:
            more["messaging.batch.message_count"] = delivery.count
        return begun("receive", Kind.CONSUMER, delivery.queue, parent, parent.child(), more)

    def ending(
        self, deliveries: Iterable[Delivery], doing: str, more: dict[str, Value] | None = None
    ) -> Ending:
        """Something is asked for that ends these deliveries, if it is done: what of them is traced."""
        found = Ending()
        for d in deliveries:
            if (d.queue.qid, d.lot, d.entry) in self._open:  # of most there is nothing
                found += [self._step(given, doing, more) for given in self._given(d)]
        return found

    @staticmethod
    def _step(given: Given, doing: str, more: dict[str, Value] | None = None) -> tuple[Span, Given]:
        parent = given.span.context
        return begun(doing, Kind.CLIENT, given.queue, parent, parent.child(), more or {}, "settle"), given

    def _given(self, d: Delivery) -> list[Given]:
        found = self._open.get((d.queue.qid, d.lot, d.entry), {})
        return [given for position, given in found.items() if d.start <= position < d.start + d.count]

    def ended(self, ending: Ending, outcome: str, error: StoreError | None, *, goes_on: bool = False) -> None:
        """outcome: what became of the message, if the store did as it was asked. goes_on: it did not, and the message
        is still out: something else ends that."""
        reason = "" if error is None else error.reason
        for step, given in ending:
            self._recorder.record(step.ended(reason))
            if not goes_on and self._take_out(given):
                given.span.attributes["penstock.outcome"] = "unknown" if reason else outcome
                self._recorder.record(given.span.ended(reason, step.end_ns))

    def _take_out(self, given: Given) -> bool:
        """False: its end has been told before."""
        spans = self._open.get(given.place, {})
        if spans.get(given.position) is not given:
            return False
        del spans[given.position]
        if not spans:
            del self._open[given.place]
        if self._pulls.get(given.request) is given:
            del self._pulls[given.request]
        return True

    def spans(self, delivery: Delivery) -> dict[int, Context]:
        """Those of a delivery that are open, by the places of their messages in it, without ending them."""
        return {given.position - delivery.start: given.span.context for given in self._given(delivery)}

    # by the request that leased it: whoever settles it names that

    def pulled(self, request: bytes, delivery: Delivery, client: Client) -> None:
        if delivery.blob[0]:
            hop = trace_context.hop_of_request(request)
            sampled = hop.is_sampled(self._recorder.ratio)
            self.received(delivery, client, [hop.context] if sampled else [], request)

    def ending_pull(self, request: bytes) -> Ending:
        given = self._pulls.get(request)
        return [] if given is None else [self._step(given, "settle")]

    def close(self) -> None:
        """What is still out ends here: nobody will hear of it any more."""
        for place in list(self._open):
            self._forget(place)

    def _forget(self, place: Place) -> None:
        for given in list(self._open[place].values()):
            self._take_out(given)
            given.span.attributes["penstock.outcome"] = "unknown"
            self._recorder.record(given.span.ended())
