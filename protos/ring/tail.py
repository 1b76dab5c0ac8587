"""A node's tail: it announces itself and accepts a predecessor (ring.md 3.5, 2.6)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from protos.ring.actions import ActionQueue, CloseInbound
from protos.ring.table import Machine, earliest, is_due
from protos.ring.times import Times


class TailState(Enum):
    """The states of a tail."""

    AWAY = "the store cannot be used: no predecessor is wanted (4.7)"
    OPEN = "no predecessor: OPEN is sent"
    TRIED = "a node has connected and sent nothing yet: OPEN goes on"
    LINKED = "there is a predecessor"


class TailMove(Enum):
    """The events that move a tail; the values are the labels of the diagram."""

    STORE_BACK = "the store can be used"
    STORE_AWAY = "the store refuses, links closed"
    CONNECTED = "a connection"
    REPLACED = "a newer connection, the silent one closed"
    COUNTS = "its first message, or 5 s"
    GONE = "it is gone"
    LOST = "the predecessor is lost, !LinkBroken(me)"


TAIL: dict[TailState, dict[TailMove, TailState]] = {
    TailState.AWAY: {TailMove.STORE_BACK: TailState.OPEN},
    TailState.OPEN: {TailMove.CONNECTED: TailState.TRIED, TailMove.STORE_AWAY: TailState.AWAY},
    TailState.TRIED: {
        TailMove.REPLACED: TailState.TRIED,
        TailMove.COUNTS: TailState.LINKED,
        TailMove.GONE: TailState.OPEN,
        TailMove.STORE_AWAY: TailState.AWAY,
    },
    TailState.LINKED: {TailMove.LOST: TailState.OPEN, TailMove.STORE_AWAY: TailState.AWAY},
}
"""The states of a tail, and where each move leads (3.5)."""


class Tail:
    """The inbound side of a node. Times in the caller's seconds.

    `opened` and `linked` are called when it has no predecessor, and when it has one. `announce` sends an OPEN; its
    argument says whether that may pretend to be of another ring (3.8).
    """

    def __init__(
        self,
        times: Times,
        action_queue: ActionQueue,
        announce: Callable[[bool], None],
        opened: Callable[[float], None],
        linked: Callable[[float], None],
    ) -> None:
        self.link: int | None = None  # the connection of the predecessor, or of a node that may become it
        self.name: bytes | None = None  # of the predecessor, once it is known to send it (2.6)
        self._machine: Machine[TailState, TailMove] = Machine(TAIL)
        self._times = times
        self._action_queue = action_queue
        self._announce = announce
        self._opened = opened
        self._linked = linked
        self._open_since = 0.0
        self._open_due: float | None = None
        self._was_in_vain = False  # the last OPEN pretended to be of another ring
        self._alone_due: float | None = None
        self._counts_due: float | None = None
        self._counts_since = 0.0  # when the connection became the predecessor's
        self._heard_at: float | None = None  # when the last message came
        self._last_name: bytes | None = None  # in the last Leader with TTL 0
        self._is_first = False  # this is the link's first message

    @property
    def state(self) -> TailState:
        """The current state."""
        return self._machine.state

    def store_back(self, now: float) -> None:
        """Announce that a predecessor is wanted."""
        self._machine.move(TailMove.STORE_BACK)
        self._open(now)

    def store_away(self, why: str) -> None:
        """Close the inbound side until the store is back."""
        self._machine.move(TailMove.STORE_AWAY)
        self._close(why)
        self._open_due = self._alone_due = None

    def accepted(self, link: int, now: float) -> None:
        """Handle a new connection."""
        if self.state in (TailState.LINKED, TailState.AWAY):
            self._action_queue.do(
                CloseInbound(link, "there is a predecessor" if self.link is not None else "away")
            )
            return
        if self.state is TailState.TRIED:
            self._close("a newer connection takes its place")
            self._machine.move(TailMove.REPLACED)
        else:
            self._machine.move(TailMove.CONNECTED)
        self.link = link
        self._counts_due = now + self._times.newcomer_s

    def heard(self, link: int, now: float) -> bool:
        """Return whether a message came from the predecessor; a first message makes its connection one."""
        if link != self.link:
            return False
        self._is_first = self._heard_at is None
        self._heard_at = now
        if self.state is TailState.TRIED:
            self._count(now)
        return True

    def named(self, name: bytes) -> None:
        """Handle Leader(name) with TTL 0: the predecessor's own name, or a proposal whose TTL has ended (2.6)."""
        if self._is_first or name == self._last_name:
            self.name = name
        self._last_name = name

    def lost(self, link: int, now: float) -> bool:
        """Handle the end of a connection; return whether it was the predecessor's."""
        if link != self.link:
            return False
        was_linked = self.state is TailState.LINKED
        self._forget()
        if was_linked:
            self._machine.move(TailMove.LOST)
            self._open(now)
        else:
            self._machine.move(TailMove.GONE)
        return was_linked

    def force(self, why: str, now: float) -> None:
        """Close the inbound side, to build it again."""
        link = self.link
        if link is not None:
            self._action_queue.do(CloseInbound(link, why))
            self.lost(link, now)

    def is_silent_since(self, time: float) -> bool:
        """Return whether there has been a predecessor since `time` and it has sent nothing."""
        return self.state is TailState.LINKED and self._last_heard() <= time

    def deadline(self) -> float | None:
        """Return when `on_time` is due."""
        silent = earliest(self._silence_due(), self._hung_due())
        return earliest(self._open_due, self._alone_due, self._counts_due, silent)

    def on_time(self, now: float) -> str:
        """Do what is due; return why the predecessor must be closed, '' if it need not."""
        if is_due(self._counts_due, now):
            self._count(now)
        if is_due(self._open_due, now):
            self._announce_again(now)
        if is_due(self._alone_due, now):
            self._alone_due = now + self._times.alone_s
            self._opened(now)
        if is_due(self._silence_due(), now):
            return "the predecessor is silent"
        if is_due(self._hung_due(), now):
            return "the predecessor is silent: no proposal comes around"
        return ""

    def _silence_due(self) -> float | None:
        if self.name is None or self._heard_at is None:
            return None
        return self._heard_at + self._times.silence_s

    def _hung_due(self) -> float | None:
        """Return when even a predecessor that never sends its name must have forwarded a proposal (4.6)."""
        if self.state is not TailState.LINKED:
            return None
        return self._last_heard() + self._times.hung_s

    def _last_heard(self) -> float:
        return self._counts_since if self._heard_at is None else self._heard_at

    def _open(self, now: float) -> None:
        self._open_since = now
        self._alone_due = now + self._times.alone_s
        self._announce_again(now)
        self._opened(now)

    def _announce_again(self, now: float) -> None:
        is_new = now - self._open_since < self._times.open_first_for_s
        self._open_due = now + (self._times.open_first_s if is_new else self._times.open_s)
        is_late = now - self._open_since >= self._times.own_ring_s
        self._was_in_vain = is_late and not self._was_in_vain
        self._announce(self._was_in_vain)

    def _count(self, now: float) -> None:
        self._machine.move(TailMove.COUNTS)
        self._counts_since = now
        self._open_due = self._alone_due = self._counts_due = None
        self._linked(now)

    def _close(self, why: str) -> None:
        if self.link is not None:
            self._action_queue.do(CloseInbound(self.link, why))
        self._forget()

    def _forget(self) -> None:
        self.link = self.name = self._counts_due = self._heard_at = self._last_name = None
