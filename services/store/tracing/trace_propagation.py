"""Messages that leave for another system, or come from one: its wire has no place for a context.

So each end makes one of what both see of the message (`trace_context.Hop`), and decides by that alone whether it
traces it. A message that is traced here anyway has a span of its attempt, which links to the other trace, and is linked
from it.
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
from services.store.tracing.spans import SYSTEM, Kind, Recorder, Span, Value, begun, readable

FORWARD = "forward"


class TracePropagation:
    """Of a process. One that is not traced has none: whoever forwards looks once a message whether there are any."""

    def __init__(self, recorder: Recorder, delivery_spans: Callable[[Queue], DeliverySpans]) -> None:
        """delivery_spans: what is out of a queue, among others, and traced."""
        self._recorder = recorder
        self._delivery_spans = delivery_spans
        self._ratio = recorder.ratio
        self._period = 1 << max(0, _log2_up(recorder.ratio))

    # coming

    def arrived(self, queue: Queue, record: bytes, hop: Hop) -> bytes:
        """The record as it is to be put in: there its trace goes on."""
        if not hop.is_sampled(self._ratio) or not self._recorder.admit():
            return record
        stamped = trace_context.stamped_within(record, hop.context, queue.spec.max_bytes)
        return record if stamped is None else stamped

    def copied(
        self, queue: Queue, record: bytes, parent: Context, context: Context
    ) -> tuple[bytes, Callable[[str], None]] | None:
        """What is put in beside the pipe; and who is told when it is there, '' or why it is among the dead letters.

        None: the context would make it too large.
        """
        stamped = trace_context.stamped_within(record, context, queue.spec.max_bytes)
        if stamped is None:
            return None
        return stamped, partial(self._became, queue, parent, context, time.time_ns())

    def _became(self, queue: Queue, parent: Context, context: Context, start_ns: int, reason: str) -> None:
        more: dict[str, Value] = {"penstock.reason": reason} if reason else {}
        span = begun("bury" if reason else "send", Kind.PRODUCER, queue, parent, context, more, "send")
        span.start_ns = start_ns
        self._recorder.record(span.ended())

    def numbers(self, first: int, last: int, offset: int = 0) -> range:
        """Which of these numbers in a row are traced, at both ends: where so many pass, none is looked at alone.

        offset: of this row, so that not all rows are traced at the same numbers.
        """
        if not self._ratio:
            return range(0)
        return range(first + -(first + offset) % self._period, last + 1, self._period)

    def admits(self) -> bool:
        return self._recorder.admit()

    def left_out(self, number: int) -> None:
        """So many more that are traced by their numbers, without a question for each: `admits` has just said no."""
        self._recorder.left_out(number)

    # leaving

    def leaving(self, delivery: Delivery, hop: Hop | None) -> Leaving | None:
        """Of one message that is about to be tried. None: nothing of it is traced."""
        parents = list(self.spans(delivery).values())
        if hop is not None and not (hop.is_sampled(self._ratio) and (parents or self._recorder.admit())):
            hop = None
        if not parents and hop is None:
            return None
        return self.tried(delivery, parents[0] if parents else None, hop)

    def has_out(self, queue: Queue) -> bool:
        """Whether `spans` may find something of this queue."""
        return bool(self._delivery_spans(queue))

    def spans(self, delivery: Delivery) -> dict[int, Context]:
        """The open ones of a delivery, by the places of their messages in it."""
        return self._delivery_spans(delivery.queue).spans(delivery)

    def tried(self, delivery: Delivery, parent: Context | None, hop: Hop | None) -> Leaving:
        """As `leaving`, of one message of the delivery about which whoever counts them has decided: `numbers`."""
        clock = self._delivery_spans(delivery.queue).clock
        return Leaving(self._recorder, clock, delivery, parent, hop)

    def asked(self, doing: str, destination: str, hop: Hop) -> Callable[[str], None] | None:
        """A question to others that no message of ours stands behind; called with '' or why it was not done."""
        if not hop.is_sampled(self._ratio) or not self._recorder.admit():
            return None
        span = Span(f"{doing} {destination}", Kind.CLIENT, hop.context, None, _about(doing, destination))
        return partial(self._ended, span)

    def passed(
        self, destination: str, context: Context, parent: Context | None, more: dict[str, Value]
    ) -> None:
        """It has been sent on, and nobody will say more of it. parent: by which it came here."""
        about = _about(FORWARD, destination) | more
        self._recorder.record(Span(f"{FORWARD} {destination}", Kind.PRODUCER, context, parent, about).ended())

    def _ended(self, span: Span, error: str) -> None:
        self._recorder.record(span.ended(error))


class Leaving:
    """One attempt. `ended`, once, before the message is settled or returned."""

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
            else begun(FORWARD, Kind.CLIENT, delivery.queue, parent, parent.child(), {}, "send")
        )

    def ended(self, outcome: str, *, is_well: bool, is_over: bool, peer: str = "") -> None:
        """is_over: there is no other attempt, so now the hop has its span, from when the message was put in."""
        error = "" if is_well else outcome
        more: dict[str, Value] = {"penstock.outcome": outcome}
        if peer:
            more["network.peer.address"] = peer
        links = [self._hop.context] if self._hop is not None else []
        if self._attempt is not None:
            self._attempt.attributes |= more
            self._attempt.links = links
            self._recorder.record(self._attempt.ended(error))
        if self._hop is None or not is_over:
            return
        delivery = self._delivery
        about: dict[str, Value] = {"penstock.origin": readable(delivery.origin), "penstock.hop": True, **more}
        span = begun(FORWARD, Kind.PRODUCER, delivery.queue, None, self._hop.context, about, "send")
        span.links = [self._attempt.context] if self._attempt is not None else []
        span.start_ns = self._clock.wall_ns(delivery.enqueued_ms)
        self._recorder.record(span.ended(error))


def _about(doing: str, destination: str) -> dict[str, Value]:
    return {
        "messaging.system": SYSTEM,
        "messaging.destination.name": destination,
        "messaging.operation.name": doing,
        "messaging.operation.type": "send",
        "penstock.hop": True,
    }


def _log2_up(ratio: float) -> int:
    """How often one is halved until it is at most the ratio."""
    halved = 0
    while ratio and 1 / (1 << halved) > ratio and halved < 62:
        halved += 1
    return halved
