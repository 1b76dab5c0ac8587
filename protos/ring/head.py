"""A node's head: it hears who is open, and connects to a successor (ring.md 3.6, 2.6)."""

from __future__ import annotations

from enum import Enum

from protos.ring.actions import ActionQueue, CloseOutbound, Dial
from protos.ring.lru import ExpiringSet
from protos.ring.messages import Leader, Loop, Open
from protos.ring.table import Machine
from protos.ring.times import Times


class HeadState(Enum):
    """Where a head stands."""

    AWAY = "the store cannot be used: no successor is wanted (4.7)"
    LISTENING = "no successor: OPENs are heard"
    CONNECTING = "a connection is being opened"
    PROVING = "connected, nothing has been acknowledged yet"
    LINKED = "there is a successor"


class HeadMove(Enum):
    """What makes a head move; the values are the labels of the diagram."""

    STORE_BACK = "the store can be used"
    STORE_AWAY = "the store refuses, links closed"
    DIALS = "?OPEN of another ring, or of this one after 60 s, or of myself after 120 s"
    CONNECTED = "connected, !Leader(me) with TTL 0"
    FAILED = "it failed, the waiting time goes on"
    PROVED = "its first A"
    LOST = "the successor is lost, the waiting time begins"


_AWAY = {HeadMove.STORE_AWAY: HeadState.AWAY}
HEAD: dict[HeadState, dict[HeadMove, HeadState]] = {
    HeadState.AWAY: {HeadMove.STORE_BACK: HeadState.LISTENING},
    HeadState.LISTENING: {HeadMove.DIALS: HeadState.CONNECTING, **_AWAY},
    HeadState.CONNECTING: {
        HeadMove.CONNECTED: HeadState.PROVING,
        HeadMove.FAILED: HeadState.LISTENING,
        **_AWAY,
    },
    HeadState.PROVING: {HeadMove.PROVED: HeadState.LINKED, HeadMove.FAILED: HeadState.LISTENING, **_AWAY},
    HeadState.LINKED: {HeadMove.LOST: HeadState.LISTENING, **_AWAY},
}
CONNECTED = (HeadState.PROVING, HeadState.LINKED)


class Head:
    """Times in the caller's seconds."""

    def __init__(self, me: bytes, times: Times, orders: ActionQueue) -> None:
        self.successor: bytes | None = None  # the node, from the moment that it is dialled
        self.waiting_since: float | None = None  # None while there is a successor, or no store
        self._machine: Machine[HeadState, HeadMove] = Machine(HEAD)
        self._me = me
        self._times = times
        self._orders = orders
        self._idle_due: float | None = None
        self._is_to_tell = False  # that I am here
        self._failed = ExpiringSet(times.open_s)  # nodes that are passed over (3.6)
        self._left: bytes | None = None  # whom I left for another ring (4.3)

    @property
    def state(self) -> HeadState:
        return self._machine.state

    @property
    def is_connected(self) -> bool:
        return self.state in CONNECTED

    # events

    def store_back(self, now: float) -> None:
        self._machine.move(HeadMove.STORE_BACK)
        self.waiting_since = now

    def store_away(self, why: str) -> None:
        if self.successor is not None:
            self._orders.do(CloseOutbound(why))
        self._machine.move(HeadMove.STORE_AWAY)
        self._forget()
        self.waiting_since = None

    def heard(self, beacon: Open, my_leader: bytes, now: float) -> None:
        """An OPEN of my group (3.6)."""
        if self.state is not HeadState.LISTENING or self.waiting_since is None:
            return
        if self._failed.has(beacon.node, now):
            return
        if beacon.node == self._me:
            wait_s = self._times.self_s
        elif beacon.leader == my_leader or beacon.node == self._left:
            wait_s = self._times.own_ring_s
        else:
            wait_s = 0.0
        if now - self.waiting_since >= wait_s:
            self._machine.move(HeadMove.DIALS)
            self.successor = beacon.node
            self._orders.do(Dial(beacon.node, beacon.service))

    def connected(self, now: float) -> None:
        self._machine.move(HeadMove.CONNECTED)
        self._tell(now)  # or nobody would know that this is no health probe (3.5)

    def connect_failed(self, now: float) -> None:
        self._machine.move(HeadMove.FAILED)
        self._pass_over(now)
        self._forget()

    def acknowledged(self) -> None:
        if self.state is HeadState.PROVING:
            self._machine.move(HeadMove.PROVED)
            self.waiting_since = self._left = None

    def lost(self, now: float) -> bool:
        """The connection is gone. True if it was a successor's; before its first `A` it was none."""
        if self.state is not HeadState.LINKED:
            self.connect_failed(now)
            return False
        self._machine.move(HeadMove.LOST)
        self._forget()
        self.waiting_since = now
        return True

    def break_off(self, why: str, now: float) -> None:
        """Whatever there is of a connection is closed."""
        if self.state in (HeadState.AWAY, HeadState.LISTENING):
            return
        self._orders.do(CloseOutbound(why))
        self._left = self.successor if self.state is HeadState.LINKED else self._left
        self.lost(now)

    def sent(self, now: float) -> None:
        """Something went to the successor."""
        self._idle_due = now + self._times.idle_s

    def next_loop(self) -> Loop | None:
        """What is for the successor; that I am here before all else (2.6)."""
        if not self.is_connected:
            return None
        if self._is_to_tell:
            self._is_to_tell = False
            return Leader(self._me, 0)
        return self._orders.next_loop()

    # time

    def deadline(self) -> float | None:
        return self._idle_due if self.is_connected else None

    def on_time(self, now: float) -> None:
        if self.is_connected and self._idle_due is not None and now >= self._idle_due:
            self._tell(now)

    # inside

    def _tell(self, now: float) -> None:
        self._is_to_tell = True
        self.sent(now)

    def _pass_over(self, now: float) -> None:
        """Who was in vain shall not keep me from others who announce themselves."""
        if self.successor is not None and self.successor != self._me:
            self._failed.mark(self.successor, now)

    def _forget(self) -> None:
        self.successor = self._idle_due = None
        self._is_to_tell = False
