"""The election of the ring's leader, as one node knows it (ring.md 4)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from protos.ring.actions import ActionQueue, SendBeacon
from protos.ring.messages import OTHERS_TTL, TTL, Find, Leader, LinkBroken
from protos.ring.ownerless_loops import GONE_AT, SUSPECT_AT, CirculationDetector
from protos.ring.table import Machine, earliest, is_due
from protos.ring.times import Times
from protos.ring.vacancy import Vacancy


class LeaderState(Enum):
    """The role of a node in the election."""

    FOLLOWER = "another node leads, or none"
    LEADER = "this node leads its ring"


class LeaderMove(Enum):
    """The events that change the leader; the values are the labels of the diagram."""

    ELECTED = "?Leader(me), !FIND"
    PROPOSED_ANOTHER = "?Leader(n), n > me, passed on"
    LINK_BROKEN = "?LinkBroken(n), or my own predecessor is lost"
    FOUND_ANOTHER = "?FIND of another leader, !FIND, outbound side closed"
    UNRETURNED = "my own proposals do not come back"
    STORE_AWAY = "the store refuses"


ELECTION: dict[LeaderState, dict[LeaderMove, LeaderState]] = {
    LeaderState.FOLLOWER: {LeaderMove.ELECTED: LeaderState.LEADER},
    LeaderState.LEADER: {
        LeaderMove.PROPOSED_ANOTHER: LeaderState.FOLLOWER,
        LeaderMove.LINK_BROKEN: LeaderState.FOLLOWER,
        LeaderMove.FOUND_ANOTHER: LeaderState.FOLLOWER,
        LeaderMove.UNRETURNED: LeaderState.FOLLOWER,
        LeaderMove.STORE_AWAY: LeaderState.FOLLOWER,
    },
}
"""The states of the election, and where each move leads (4)."""


class Election:
    """The node's view of the leader. Times in the caller's seconds; no events come while the store is away.

    `candidates` returns other possible leaders, the likeliest first; `went_round` is called with names that no node
    here answers to; `open_ring` breaks the outbound side, and the inbound one if that has no effect.
    """

    def __init__(
        self,
        me: bytes,
        group: int,
        times: Times,
        action_queue: ActionQueue,
        candidates: Callable[[float], list[bytes]],
        went_round: Callable[[bytes, float], None],
        open_ring: Callable[[str, float], None],
    ) -> None:
        self.leader = me  # "my leader" (4.1)
        self._machine: Machine[LeaderState, LeaderMove] = Machine(ELECTION)
        self._me = me
        self._group = group
        self._times = times
        self._action_queue = action_queue
        self._propose_due: float | None = None
        self._find_due: float | None = None
        self._return_due: float | None = None  # a leader's own proposal must be back by then (4.6)
        self._alone_due: float | None = None  # a follower must have had a proposal by then (4.6)
        self._confirm_due: float | None = None  # the leader must have been heard by then
        self._unheard: bytes | None = None  # a leader that was not heard in time
        self._heard_at: float | None = None  # when the leader was last heard
        self._vacancy = Vacancy(me, times, self._propose, candidates, self._lost)
        self._circulation = CirculationDetector()
        self._went_round = went_round
        self._open_ring = open_ring

    @property
    def is_leader(self) -> bool:
        """True if this node leads the ring."""
        return self._machine.state is LeaderState.LEADER

    def is_led(self, now: float) -> bool:
        """Return whether this node leads, or its leader was heard recently (4.6)."""
        return self.is_leader or (self._heard_at is not None and now - self._heard_at < self._times.confirm_s)

    def store_back(self, now: float) -> None:
        """Start looking for a leader."""
        self._alone_due = now + self._times.no_leader_s
        self._vacancy.begin(now)

    def store_away(self) -> None:
        """Stop leading, and wait for nothing."""
        self._alone_due = self._confirm_due = self._heard_at = None
        self._vacancy.end()
        self._step_down(LeaderMove.STORE_AWAY)

    def proposed(self, message: Leader, now: float) -> None:
        """Handle Leader(n) with TTL > 0 (4.2)."""
        if message.name < self._me:
            self.propose()
        elif message.name == self._me:
            self._hear_mine(message, now)
        else:
            self._hear_other(message, now)

    def link_broken(self, message: LinkBroken, now: float) -> None:
        """Handle LinkBroken(n) with TTL > 0, n not this node (4.4)."""
        self.depose(LeaderMove.LINK_BROKEN, now)
        if self._circulation.count(message, now) < GONE_AT:
            self._action_queue.forward(message)

    def propose(self) -> None:
        """Propose this node."""
        self._propose(self._me)

    def found(self, beacon: Find, now: float) -> bool:
        """Handle a FIND of this group; return whether the ring must be opened (4.3)."""
        if self._vacancy.has_just_proposed(beacon.leader, now):
            self._accept(beacon.leader, now)  # it has heard me (4.6)
        if beacon.leader == self.leader:
            self._confirm_due, self._heard_at = None, now
        if beacon.leader == self._unheard:
            self._unheard = None
        if not self.is_leader or beacon.leader == self._me:
            return False
        self._find()
        self.depose(LeaderMove.FOUND_ANOTHER, now)
        return True

    def depose(self, move: LeaderMove, now: float) -> None:
        """Stop leading, if this node did; the leader is unknown (4.6)."""
        if self._step_down(move):
            self._alone_due = now + self._times.no_leader_s
        self._vacancy.begin(now)

    def deadline(self) -> float | None:
        """Return when `on_time` is due."""
        leads = earliest(self._propose_due, self._find_due, self._return_due)
        return earliest(leads, self._alone_due, self._confirm_due, self._vacancy.deadline())

    def on_time(self, now: float) -> None:
        """Do what is due."""
        if is_due(self._return_due, now):
            self.depose(LeaderMove.UNRETURNED, now)
        if is_due(self._propose_due, now):
            self._propose_due = now + self._times.propose_s
            self.propose()
        if is_due(self._find_due, now):
            self._find_due = now + self._times.find_s
            self._find()
        if is_due(self._alone_due, now):
            self._alone_due = now + self._times.no_leader_s
            self._stand(now)
        if is_due(self._confirm_due, now):
            self._confirm_due, self._unheard = None, self.leader
            self._vacancy.begin(now, waited=True)
        self._vacancy.on_time(now)

    def _hear_mine(self, message: Leader, now: float) -> None:
        if message.ttl <= OTHERS_TTL:
            self.propose()  # another node proposed this one (4.6): not all have heard it
        else:
            self.leader, self._heard_at = self._me, None
            self._elect(now)
            self._return_due = now + self._times.hung_s

    def _hear_other(self, message: Leader, now: float) -> None:
        if message.ttl <= OTHERS_TTL and message.name < self.leader and not self._vacancy.is_on:
            return  # two would be elected
        passes = self._circulation.count(message, now)
        self._accept(message.name, now)
        if message.ttl > OTHERS_TTL:  # otherwise another node proposes it (4.6)
            self._heard_at = now
        self._step_down(LeaderMove.PROPOSED_ANOTHER)
        if passes >= SUSPECT_AT:
            self._went_round(message.name, now)
            self.leader, self._heard_at = self._me, None
            self._vacancy.begin(now)
        if passes < GONE_AT:
            self._action_queue.forward(message)
        else:
            self._stand(now)  # it has deposed all others

    def _accept(self, name: bytes, now: float) -> None:
        if name != self.leader or self._vacancy.is_on:
            self._confirm_due = now + self._times.confirm_s
        if name != self.leader:
            self.leader, self._heard_at = name, None
        self._alone_due = now + self._times.no_leader_s
        if name == self._unheard:
            self._vacancy.is_not_lost(now)
        else:
            self._vacancy.end()

    def _elect(self, now: float) -> None:
        if not self._machine.may(LeaderMove.ELECTED):
            return
        self._machine.move(LeaderMove.ELECTED)
        self._alone_due = self._confirm_due = None
        self._vacancy.end()
        self._propose_due = now + self._times.propose_s
        self._find_due = now + self._times.find_s
        self._find()

    def _step_down(self, move: LeaderMove) -> bool:
        if not self._machine.may(move):
            return False
        self._machine.move(move)
        self._propose_due = self._find_due = self._return_due = None
        return True

    def _stand(self, now: float) -> None:
        """Take this node for its leader and propose it (4.6)."""
        self.leader, self._heard_at = self._me, None
        self.propose()
        self._vacancy.begin(now)

    def _lost(self, now: float) -> None:
        self._find()
        self._open_ring("the ring has no leader", now)

    def _propose(self, name: bytes) -> None:
        self._action_queue.send(Leader(name, TTL if name == self._me else OTHERS_TTL))

    def _find(self) -> None:
        self._action_queue.do(SendBeacon(Find(self._group, self._me)))
