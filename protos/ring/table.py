"""State machines that move only as their tables say (ring.md 3.7, 4.9)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

from protos.types import LocalError

StateT = TypeVar("StateT", bound=Enum)
MoveT = TypeVar("MoveT", bound=Enum)


class Machine(Generic[StateT, MoveT]):
    """A state that starts as the table's first and moves only along the table."""

    __slots__ = ("_table", "state")

    def __init__(self, table: Mapping[StateT, Mapping[MoveT, StateT]]) -> None:
        self._table = table
        self.state = next(iter(table))

    def may(self, move: MoveT) -> bool:
        """Return whether the move is allowed in this state."""
        return move in self._table[self.state]

    def move(self, move: MoveT) -> None:
        """Move. Raises LocalError for a move that the table lacks."""
        following = self._table[self.state].get(move)
        if following is None:
            raise LocalError(f"move {move.name} is not allowed in state {self.state.name}")
        self.state = following


def earliest(*times: float | None) -> float | None:
    """Return the earliest of these times; None if there is none."""
    found: float | None = None
    for time in times:  # a loop, as it is called for every event
        if time is not None and (found is None or time < found):
            found = time
    return found


def is_due(time: float | None, now: float) -> bool:
    """Return whether the time, if any, has come."""
    return time is not None and now >= time
