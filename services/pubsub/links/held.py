"""Which numbers of which origins: what a side of a link holds, or lacks (pubsub.md 4.4)."""

from __future__ import annotations

from protos import pubsub
from services.store.intervals import Intervals
from services.store.replica import Held, Origin

NONE = Intervals()


def from_wire(held: pubsub.Held) -> Held:
    return {origin: Intervals(spans) for origin, spans in held.items()}


def to_wire(held: Held) -> pubsub.Held:
    return {origin: numbers.spans for origin, numbers in held.items() if numbers}


def united(one: Held, other: Held) -> Held:
    """What either of them holds."""
    origins = one.keys() | other.keys()
    return {origin: one.get(origin, NONE).union(other.get(origin, NONE)) for origin in origins}


def lacking(held: Held, of: Held) -> list[tuple[Origin, tuple[int, int]]]:
    """The stretches of `of` that `held` does not have."""
    return [
        (origin, span)
        for origin, numbers in of.items()
        for span in numbers.minus(held.get(origin, NONE)).spans
    ]
