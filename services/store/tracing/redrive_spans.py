"""Spans of dead letters that were brought back."""

from __future__ import annotations

from services.store.model.queues import Queue
from services.store.model.trace_context import of_packed
from services.store.tracing.spans import Kind, Recorder, Value, begun

PER_LETTER = 3  # id, reason, attributes


def tell(recorder: Recorder, goal: Queue, told: list[bytes], start_ns: int) -> None:
    """Of one call: exactly what it has moved, as the store tells it (lua/redrive.lua)."""
    for at in range(0, len(told), PER_LETTER):
        identifier, reason, attributes = told[at : at + PER_LETTER]
        parent = of_packed(attributes)
        if parent is None or not parent.is_sampled or not recorder.follow():
            continue
        more: dict[str, Value] = {"penstock.letter": identifier.decode(), "penstock.reason": reason.decode()}
        span = begun("redrive", Kind.PRODUCER, goal, parent, parent.child(), more, "send")
        span.start_ns = start_ns
        recorder.record(span.ended())
