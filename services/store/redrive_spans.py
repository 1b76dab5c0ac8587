"""Spans of dead letters that are brought back."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from services.store.queues import Queue
from services.store.spans import Kind, Recorder, Span, Value, begun
from services.store.trace_context import of_attributes

if TYPE_CHECKING:
    from services.store.letter import DeadLetter


class RedriveSpans:
    """Of one call. `letters` are those that it may bring back; without a recorder nothing is told."""

    def __init__(self, recorder: Recorder | None, letters: Iterable[DeadLetter], goal: Queue) -> None:
        self._recorder = recorder
        self._spans: list[tuple[str, Span]] = []
        if recorder is None:
            return
        for letter in letters:
            parent = of_attributes(letter.attributes)
            if parent is not None and parent.is_sampled and recorder.admit():
                more: dict[str, Value] = {"penstock.letter": letter.id, "penstock.reason": letter.reason}
                span = begun("redrive", Kind.PRODUCER, goal, parent, parent.child(), more, "send")
                self._spans.append((letter.id, span))

    def done(self, ids: Container[str]) -> None:
        """These were brought back, but for any that somebody else had taken out."""
        if self._recorder is not None:
            for identifier, span in self._spans:
                if identifier in ids:
                    self._recorder.record(span.ended())
