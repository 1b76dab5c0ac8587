"""Spans of redriven dead letters."""

from __future__ import annotations

from services.store.model.queues import Queue
from services.store.model.trace_context import of_packed
from services.store.tracing.spans import Kind, Recorder, Value, start_span

PER_LETTER = 3  # id, reason, attributes


def record_redrives(recorder: Recorder, goal: Queue, moved: list[bytes], start_ns: int) -> None:
    """Record a span for each traced letter that one call moved, by the call's reply (lua/redrive.lua)."""
    for at in range(0, len(moved), PER_LETTER):
        identifier, reason, attributes = moved[at : at + PER_LETTER]
        parent = of_packed(attributes)
        if parent is None or not parent.is_sampled or not recorder.follow():
            continue
        more: dict[str, Value] = {"penstock.letter": identifier.decode(), "penstock.reason": reason.decode()}
        span = start_span("redrive", Kind.PRODUCER, goal, parent, parent.child(), more, "send")
        span.start_ns = start_ns
        recorder.record(span.end())
