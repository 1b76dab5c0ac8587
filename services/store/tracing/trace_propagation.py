"""Trace messages across systems whose wire has no place for a trace context.

Each end derives the same context from what both see of the message (`trace_context.Hop`), and decides by it whether to
trace the message. A message that is traced here already gets a span of the attempt, linked with the derived trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from services.store.model import trace_context
from services.store.model.clock import Clock
from services.store.model.delivery import Delivery
from services.store.model.queues import Queue
from services.store.model.trace_context import Context, Hop
from services.store.tracing.delivery_spans import DeliverySpans
from services.store.tracing.spans import SYSTEM, Kind, Recorder, Span, Value, readable, start_span

FORWARD = "forward"


class TracePropagation:
    """Trace propagation of a traced process; untraced processes have None, which forwarding checks once a message."""

    def __init__(self, recorder: Recorder, delivery_spans: Callable[[Queue], DeliverySpans]) -> None:
        """delivery_spans: what is out of a queue, among others, and traced."""
        self._recorder = recorder
        self._delivery_spans = delivery_spans
        self._ratio = recorder.ratio
        self._period = 1 << max(0, _log2_up(recorder.ratio))

    def arrived(self, queue: Queue, record: bytes, hop: Hop) -> bytes:
        """Return the record of a received message with the hop's context, if it is sampled."""
        if not hop.is_sampled(self._ratio) or not self._recorder.admit():
            return record
        stamped = trace_context.stamped_within(record, hop.context, queue.spec.max_bytes)
        return record if stamped is None else stamped

    def copied(
        self, queue: Queue, record: bytes, parent: Context, context: Context
    ) -> tuple[bytes, Callable[[str], None]] | None:
        """Stamp a context on a record that is published beside the pipe; return it and the callback of its outcome.

        Call that with '' or the dead letter reason. None: the context would make the record too large.
        """
        stamped = trace_context.stamped_within(record, context, queue.spec.max_bytes)
        if stamped is None:
            return None
        return stamped, partial(self._became, queue, parent, context, time.time_ns())

    def _became(self, queue: Queue, parent: Context, context: Context, start_ns: int, reason: str) -> None:
        more: dict[str, Value] = {"penstock.reason": reason} if reason else {}
        span = start_span("bury" if reason else "send", Kind.PRODUCER, queue, parent, context, more, "send")
        span.start_ns = start_ns
        self._recorder.record(span.end())

    def numbers(self, first: int, last: int, offset: int = 0) -> range:
        """Return the numbers of a sequence that both ends trace, so that not every message need be checked.

        offset: of this sequence, so that sequences are not all traced at the same numbers.
        """
        if not self._ratio:
            return range(0)
        return range(first + -(first + offset) % self._period, last + 1, self._period)

    def admits(self) -> bool:
        """Return whether one more message may begin a trace now (see `Recorder.admit`)."""
        return self._recorder.admit()

    def left_out(self, number: int) -> None:
        """Count messages traced by their numbers as left out, after `admits` has returned False."""
        self._recorder.left_out(number)

    def leaving(self, delivery: Delivery, hop: Hop | None) -> Leaving | None:
        """Begin the span of an attempt to forward one message. None: it is not traced."""
        parents = list(self.spans(delivery).values())
        if hop is not None and not (hop.is_sampled(self._ratio) and (parents or self._recorder.admit())):
            hop = None
        if not parents and hop is None:
            return None
        return self.tried(delivery, parents[0] if parents else None, hop)

    def has_out(self, queue: Queue) -> bool:
        """Return whether the queue's domain has open spans of deliveries."""
        return bool(self._delivery_spans(queue))

    def spans(self, delivery: Delivery) -> dict[int, Context]:
        """Return the contexts of a delivery's open spans, by the index of the message in the delivery."""
        return self._delivery_spans(delivery.queue).spans(delivery)

    def tried(self, delivery: Delivery, parent: Context | None, hop: Hop | None) -> Leaving:
        """Begin the span of an attempt for a message that `numbers` has sampled."""
        clock = self._delivery_spans(delivery.queue).clock
        return Leaving(self._recorder, clock, delivery, parent, hop)

    def asked(self, doing: str, destination: str, hop: Hop) -> Callable[[str], None] | None:
        """Begin the span of a request without a message; return its callback, to be called with '' or the error."""
        if not hop.is_sampled(self._ratio) or not self._recorder.admit():
            return None
        span = Span(f"{doing} {destination}", Kind.CLIENT, hop.context, None, _about(doing, destination))
        return partial(self._ended, span)

    def passed(
        self, destination: str, context: Context, parent: Context | None, more: dict[str, Value]
    ) -> None:
        """Record the span of a message that was forwarded without confirmation. parent: its span here."""
        about = _about(FORWARD, destination) | more
        self._recorder.record(Span(f"{FORWARD} {destination}", Kind.PRODUCER, context, parent, about).end())

    def _ended(self, span: Span, error: str) -> None:
        self._recorder.record(span.end(error))


class Leaving:
    """The span of one attempt to forward a message. Call `ended` once, before the message is settled or returned."""

    def __init__(
        self,
        recorder: Recorder,
        clock: Clock,
        delivery: Delivery,
        parent: Context | None,
        hop: Hop | None,
    ) -> None:
        self._recorder = recorder
        self._clock = clock
        self._delivery = delivery
        self._hop = hop
        self._attempt = (
            None
            if parent is None
            else start_span(FORWARD, Kind.CLIENT, delivery.queue, parent, parent.child(), {}, "send")
        )

    def ended(self, outcome: str, *, is_well: bool, is_over: bool, peer: str = "") -> None:
        """Record the attempt's span. is_over: it was the last one; record the hop's span since the publish, too."""
        error = "" if is_well else outcome
        more: dict[str, Value] = {"penstock.outcome": outcome}
        if peer:
            more["network.peer.address"] = peer
        links = [self._hop.context] if self._hop is not None else []
        if self._attempt is not None:
            self._attempt.attributes |= more
            self._attempt.links = links
            self._recorder.record(self._attempt.end(error))
        if self._hop is None or not is_over:
            return
        delivery = self._delivery
        about: dict[str, Value] = {"penstock.origin": readable(delivery.origin), "penstock.hop": True, **more}
        span = start_span(FORWARD, Kind.PRODUCER, delivery.queue, None, self._hop.context, about, "send")
        span.links = [self._attempt.context] if self._attempt is not None else []
        span.start_ns = self._clock.wall_ns(delivery.enqueued_ms)
        self._recorder.record(span.end(error))


def _about(doing: str, destination: str) -> dict[str, Value]:
    return {
        "messaging.system": SYSTEM,
        "messaging.destination.name": destination,
        "messaging.operation.name": doing,
        "messaging.operation.type": "send",
        "penstock.hop": True,
    }


def _log2_up(ratio: float) -> int:
    """Return how often 1 must be halved to be at most the ratio."""
    halved = 0
    while ratio and 1 / (1 << halved) > ratio and halved < 62:
        halved += 1
    return halved
