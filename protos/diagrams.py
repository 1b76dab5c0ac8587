"""A protocol's state machine as a picture: the table that drives the code is also what the spec shows."""

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

StateT = TypeVar("StateT", bound=Enum)
MoveT = TypeVar("MoveT", bound=Enum)


def mermaid(
    transitions: Mapping[StateT, Mapping[MoveT, StateT]], names: Mapping[Enum, str] | None = None
) -> str:
    """A Mermaid `stateDiagram-v2`: states by name, an arrow for each move, in the table's order.

    The first state of the table is where it begins. Arrows are labelled by the moves' values, unless `names` has
    another text; no label may hold a colon or a semicolon, which Mermaid reads as its own.
    """
    texts = names or {}
    first = next(iter(transitions))
    arrows = [
        f"    {state.name} --> {following.name}: {texts.get(move, move.value)}"
        for state, moves in transitions.items()
        for move, following in moves.items()
    ]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {first.name}", *arrows]) + "\n"
