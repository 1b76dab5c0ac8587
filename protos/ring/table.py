"""What makes the tables the only way to move (ring.md 3.7, 4.9)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

from protos.types import LocalError

StateT = TypeVar("StateT", bound=Enum)
MoveT = TypeVar("MoveT", bound=Enum)


class Machine(Generic[StateT, MoveT]):
    """A state that only moves as its table says. It begins in the table's first."""

    __slots__ = ("_table", "state")

    def __init__(self, table: Mapping[StateT, Mapping[MoveT, StateT]]) -> None:
        self._table = table
        self.state = next(iter(table))

    def may(self, move: MoveT) -> bool:
        return move in self._table[self.state]

    def move(self, move: MoveT) -> None:
        """LocalError for a move that the table lacks."""
        following = self._table[self.state].get(move)
        if following is None:
            raise LocalError(f"{self.state.name} has no move {move.name}")
        self.state = following


def earliest(*times: float | None) -> float | None:
    found: float | None = None
    for time in times:  # a loop: each node asks with everything that happens
        if time is not None and (found is None or time < found):
            found = time
    return found


def is_due(time: float | None, now: float) -> bool:
    return time is not None and now >= time
