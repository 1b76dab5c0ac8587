"""A node's head: it receives OPENs and connects to a successor (ring.md 3.6, 2.6)."""

from __future__ import annotations

from enum import Enum

from protos.ring.actions import ActionQueue, CloseOutbound, Dial
from protos.ring.lru import ExpiringSet
from protos.ring.messages import Leader, Loop, Open
from protos.ring.table import Machine
from protos.ring.times import Times


class HeadState(Enum):
    """The states of a head."""

    AWAY = "the store cannot be used: no successor is wanted (4.7)"
    LISTENING = "no successor: OPENs are heard"
    CONNECTING = "a connection is being opened"
    PROVING = "connected, nothing has been acknowledged yet"
    LINKED = "there is a successor"


class HeadMove(Enum):
    """The events that move a head; the values are the labels of the diagram."""

    STORE_BACK = "the store can be used"
    STORE_AWAY = "the store refuses, links closed"
    DIALS = "?OPEN of another ring, or of this one after 60 s, or of myself after 120 s"
    CONNECTED = "connected, !Leader(me) with TTL 0"
    FAILED = "it failed, the waiting time goes on"
    PROVED = "its first A"
    LOST = "the successor is lost, the waiting time begins"


HEAD: dict[HeadState, dict[HeadMove, HeadState]] = {
    HeadState.AWAY: {HeadMove.STORE_BACK: HeadState.LISTENING},
    HeadState.LISTENING: {HeadMove.DIALS: HeadState.CONNECTING, HeadMove.STORE_AWAY: HeadState.AWAY},
    HeadState.CONNECTING: {
        HeadMove.CONNECTED: HeadState.PROVING,
        HeadMove.FAILED: HeadState.LISTENING,
        HeadMove.STORE_AWAY: HeadState.AWAY,
    },
    HeadState.PROVING: {
        HeadMove.PROVED: HeadState.LINKED,
        HeadMove.FAILED: HeadState.LISTENING,
        HeadMove.STORE_AWAY: HeadState.AWAY,
    },
    HeadState.LINKED: {HeadMove.LOST: HeadState.LISTENING, HeadMove.STORE_AWAY: HeadState.AWAY},
}
"""The states of a head, and where each move leads (3.6)."""
CONNECTED = (HeadState.PROVING, HeadState.LINKED)


class Head:
    """The outbound side of a node. Times in the caller's seconds."""

    def __init__(self, me: bytes, times: Times, action_queue: ActionQueue) -> None:
        self.successor: bytes | None = None  # the node, from the attempt to connect on
        self.waiting_since: float | None = None  # None while there is a successor, or the store is away
        self._machine: Machine[HeadState, HeadMove] = Machine(HEAD)
        self._me = me
        self._times = times
        self._action_queue = action_queue
        self._idle_due: float | None = None
        self._must_announce = False  # this node's name is to be sent
        self._failed = ExpiringSet(times.open_s)  # nodes that are ignored (3.6)
        self._left: bytes | None = None  # the successor left for another ring (4.3)

    @property
    def state(self) -> HeadState:
        """The current state."""
        return self._machine.state

    @property
    def is_connected(self) -> bool:
        """True if there is a connection, acknowledged or not."""
        return self.state in CONNECTED

    def store_back(self, now: float) -> None:
        """Start looking for a successor."""
        self._machine.move(HeadMove.STORE_BACK)
        self.waiting_since = now

    def store_away(self, why: str) -> None:
        """Close the outbound side until the store is back."""
        if self.successor is not None:
            self._action_queue.do(CloseOutbound(why))
        self._machine.move(HeadMove.STORE_AWAY)
        self._forget()
        self.waiting_since = None

    def heard(self, beacon: Open, my_leader: bytes, now: float) -> None:
        """Handle an OPEN of this group: connect, if it is time to (3.6)."""
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
            self._action_queue.do(Dial(beacon.node, beacon.service))

    def connected(self, now: float) -> None:
        """Send this node's name at once, which tells the peer that this is not a health probe (3.5)."""
        self._machine.move(HeadMove.CONNECTED)
        self._announce(now)

    def connect_failed(self, now: float) -> None:
        """Ignore the node for a while, so that others that announce themselves get a turn."""
        self._machine.move(HeadMove.FAILED)
        if self.successor is not None and self.successor != self._me:
            self._failed.mark(self.successor, now)
        self._forget()

    def acknowledged(self) -> None:
        """Note an `A`: the first one makes the peer a successor."""
        if self.state is HeadState.PROVING:
            self._machine.move(HeadMove.PROVED)
            self.waiting_since = self._left = None

    def lost(self, now: float) -> bool:
        """Handle the end of the connection; return whether it was a successor's, which has sent an `A`."""
        if self.state is not HeadState.LINKED:
            self.connect_failed(now)
            return False
        self._machine.move(HeadMove.LOST)
        self._forget()
        self.waiting_since = now
        return True

    def break_off(self, why: str, now: float) -> None:
        """Close the connection, in any state."""
        if self.state in (HeadState.AWAY, HeadState.LISTENING):
            return
        self._action_queue.do(CloseOutbound(why))
        self._left = self.successor if self.state is HeadState.LINKED else self._left
        self.lost(now)

    def sent(self, now: float) -> None:
        """Note that a message was sent to the successor."""
        self._idle_due = now + self._times.idle_s

    def next_loop(self) -> Loop | None:
        """Return the next LOOP for the successor; this node's name comes first (2.6)."""
        if not self.is_connected:
            return None
        if self._must_announce:
            self._must_announce = False
            return Leader(self._me, 0)
        return self._action_queue.next_loop()

    def deadline(self) -> float | None:
        """Return when the idle link needs a message."""
        return self._idle_due if self.is_connected else None

    def on_time(self, now: float) -> None:
        """Send this node's name on an idle link."""
        if self.is_connected and self._idle_due is not None and now >= self._idle_due:
            self._announce(now)

    def _announce(self, now: float) -> None:
        self._must_announce = True
        self.sent(now)

    def _forget(self) -> None:
        self.successor = self._idle_due = None
        self._must_announce = False
