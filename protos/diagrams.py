"""Draw a protocol's state machine: the table that drives the code is also what the spec shows."""

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

StateT = TypeVar("StateT", bound=Enum)
MoveT = TypeVar("MoveT", bound=Enum)


def mermaid(
    transitions: Mapping[StateT, Mapping[MoveT, StateT]], names: Mapping[Enum, str] | None = None
) -> str:
    """Return a Mermaid `stateDiagram-v2`: states by name, an arrow for each move, in the table's order.

    The first state of the table is the initial one. Arrows are labelled by the moves' values, unless `names` has
    another text; a label must not hold a colon or a semicolon, which Mermaid interprets.
    """
    texts = names or {}
    first = next(iter(transitions))
    arrows = [
        f"    {state.name} --> {following.name}: {texts.get(move, move.value)}"
        for state, moves in transitions.items()
        for move, following in moves.items()
    ]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {first.name}", *arrows]) + "\n"
