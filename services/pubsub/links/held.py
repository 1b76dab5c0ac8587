"""Which numbers of which origins: what a side of a link holds, or lacks (pubsub.md 4.4)."""

from __future__ import annotations

from protos import pubsub
from services.store.log import Held, Origin
from services.store.model import Intervals, Span

NONE = Intervals()


def from_wire(held: pubsub.Held) -> Held:
    return {origin: Intervals(spans) for origin, spans in held.items()}


def to_wire(held: Held) -> pubsub.Held:
    """As much of it as a list may have; the origins in most pieces are left out first.

    Whoever is told of less than is held sends the rest once more, and it is skipped (4.4).
    """
    listed: dict[Origin, tuple[Span, ...]] = {}
    room = pubsub.MAX_INTERVALS
    for origin, numbers in sorted(held.items(), key=lambda item: len(item[1].spans)):
        room -= len(numbers.spans)
        if room < 0:
            break
        if numbers:
            listed[origin] = numbers.spans
    return listed


def united(one: Held, other: Held) -> Held:
    """What either of them holds."""
    origins = one.keys() | other.keys()
    return {origin: one.get(origin, NONE).union(other.get(origin, NONE)) for origin in origins}


def lacking(held: Held, of: Held) -> list[tuple[Origin, Span]]:
    """The stretches of `of` that `held` does not have."""
    return [
        (origin, span)
        for origin, numbers in of.items()
        for span in numbers.minus(held.get(origin, NONE)).spans
    ]
