"""Sets of message numbers by origin: which messages a side of a link holds or lacks (pubsub.md 4.4)."""

from __future__ import annotations

from protos import pubsub
from services.store.log import Held, Origin
from services.store.model import Intervals, Span

NONE = Intervals()


def from_wire(held: pubsub.Held) -> Held:
    """Return sets as the store keeps them."""
    return {origin: Intervals(spans) for origin, spans in held.items()}


def to_wire(held: Held) -> pubsub.Held:
    """Return as many sets as a message may list; origins with the most intervals are left out first.

    Messages left out are sent again by the neighbour, and skipped (4.4).
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
    """Return the union."""
    origins = one.keys() | other.keys()
    return {origin: one.get(origin, NONE).union(other.get(origin, NONE)) for origin in origins}


def lacking(held: Held, of: Held) -> list[tuple[Origin, Span]]:
    """Return the intervals of `of` that `held` does not have."""
    return [
        (origin, span)
        for origin, numbers in of.items()
        for span in numbers.minus(held.get(origin, NONE)).spans
    ]
