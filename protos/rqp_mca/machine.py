"""Enforce that the sending machine moves only as its table says (rqp_mca.md 3)."""

from collections.abc import Iterable

from protos.rqp_mca.actions import Action, Close, Peer
from protos.rqp_mca.transitions import TRANSITIONS, Move, State
from protos.types import LocalError


class Machine:
    """A state, the deadline in it, and the actions to carry out."""

    __slots__ = ("_actions", "_due", "_state")

    def __init__(self) -> None:
        self._state = State.IDLE
        self._due: float | None = None
        self._actions: list[Action] = []

    @property
    def state(self) -> State:
        """The current state."""
        return self._state

    def deadline(self) -> float | None:
        """Return when `on_time` is due; None while nothing is awaited."""
        return self._due

    def _move(self, move: Move) -> None:
        """Change the state. Raises LocalError for a move that the table lacks."""
        following = TRANSITIONS[self._state].get(move)
        if following is None:
            raise LocalError(f"move {move.name} is not allowed in state {self._state.name}")
        self._state = following

    def _await(self, move: Move, due: float | None) -> None:
        """Change the state, and wait until `due`."""
        self._move(move)
        self._due = due

    def _do(self, *actions: Action) -> None:
        self._actions.extend(actions)

    def _close(self, peers: Iterable[Peer]) -> None:
        self._actions.extend(map(Close, peers))

    def _taken(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions
