"""Who leads the ring, as one node knows it (ring.md 4)."""

from __future__ import annotations

from enum import Enum

from protos.ring.actions import Orders, SendBeacon
from protos.ring.messages import Find, Leader
from protos.ring.table import Machine, earliest, is_due
from protos.ring.times import Times


class LeaderState(Enum):
    """Whether a node leads."""

    FOLLOWER = "another one leads, or nobody"
    LEADER = "this node leads its ring"


class LeaderMove(Enum):
    """What makes a leader; the values are the labels of the diagram."""

    ELECTED = "?Leader(me), !FIND"
    PROPOSED_ANOTHER = "?Leader(n), n > me, passed on"
    LINK_BROKEN = "?LinkBroken(n), or my own predecessor is lost"
    FOUND_ANOTHER = "?FIND of another leader, !FIND, outbound side closed"
    STORE_AWAY = "the store refuses"


ELECTION: dict[LeaderState, dict[LeaderMove, LeaderState]] = {
    LeaderState.FOLLOWER: {LeaderMove.ELECTED: LeaderState.LEADER},
    LeaderState.LEADER: {
        LeaderMove.PROPOSED_ANOTHER: LeaderState.FOLLOWER,
        LeaderMove.LINK_BROKEN: LeaderState.FOLLOWER,
        LeaderMove.FOUND_ANOTHER: LeaderState.FOLLOWER,
        LeaderMove.STORE_AWAY: LeaderState.FOLLOWER,
    },
}


class Election:
    """Times in the caller's seconds. It is told nothing while the store is away."""

    def __init__(self, me: bytes, group: int, times: Times, orders: Orders) -> None:
        self.leader = me  # "my leader" (4.1)
        self._machine: Machine[LeaderState, LeaderMove] = Machine(ELECTION)
        self._me = me
        self._group = group
        self._times = times
        self._orders = orders
        self._propose_due: float | None = None
        self._find_due: float | None = None
        self._alone_due: float | None = None  # when a follower has had no proposal for too long (4.6)

    @property
    def is_leader(self) -> bool:
        return self._machine.state is LeaderState.LEADER

    # events

    def store_back(self, now: float) -> None:
        self._alone_due = now + self._times.no_leader_s

    def store_away(self) -> None:
        self._alone_due = None
        self.depose(LeaderMove.STORE_AWAY, None)

    def proposed(self, message: Leader, now: float) -> None:
        """Leader(n) with TTL > 0 (4.2)."""
        if message.name < self._me:
            self.propose()
            return
        self.leader = message.name
        if message.name == self._me:
            self._elect(now)
            return
        self._alone_due = now + self._times.no_leader_s
        self.depose(LeaderMove.PROPOSED_ANOTHER, now)
        self._orders.pass_on(message)

    def propose(self) -> None:
        self._orders.say(Leader(self._me))

    def found(self, beacon: Find, now: float) -> bool:
        """FIND of my group. True if my ring is to be opened (4.3)."""
        if not self.is_leader or beacon.leader == self._me:
            return False
        self._find()
        self.depose(LeaderMove.FOUND_ANOTHER, now)
        return True

    def depose(self, move: LeaderMove, now: float | None) -> None:
        """I lead no more, if I did; None: and do not wait for another one."""
        if not self._machine.may(move):
            return
        self._machine.move(move)
        self._propose_due = self._find_due = None
        if now is not None:
            self._alone_due = now + self._times.no_leader_s

    # time

    def deadline(self) -> float | None:
        return earliest(self._propose_due, self._find_due, self._alone_due)

    def on_time(self, now: float) -> None:
        if is_due(self._propose_due, now):
            self._propose_due = now + self._times.propose_s
            self.propose()
        if is_due(self._find_due, now):
            self._find_due = now + self._times.find_s
            self._find()
        if is_due(self._alone_due, now):
            self._alone_due = now + self._times.no_leader_s
            self.leader = self._me
            self.propose()

    # inside

    def _elect(self, now: float) -> None:
        if self._machine.may(LeaderMove.ELECTED):
            self._machine.move(LeaderMove.ELECTED)
            self._alone_due = None
            self._propose_due = now + self._times.propose_s
            self._find_due = now + self._times.find_s
            self._find()

    def _find(self) -> None:
        self._orders.do(SendBeacon(Find(self._group, self._me)))
