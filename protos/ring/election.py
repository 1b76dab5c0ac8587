"""Who leads the ring, as one node knows it (ring.md 4)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from protos.ring.actions import ActionQueue, SendBeacon
from protos.ring.circulation import GONE_AT, SUSPECT_AT, CirculationDetector
from protos.ring.messages import OTHERS_TTL, TTL, Find, Leader, LinkBroken
from protos.ring.table import Machine, earliest, is_due
from protos.ring.times import Times
from protos.ring.vacancy import Vacancy


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


class Election:
    """Times in the caller's seconds. It is told nothing while the store is away.

    `candidates` says who else might lead, the likeliest first; `went_round` is told of names that
    nobody here answers to; `open_ring` breaks the outbound side, and the inbound one if
    nothing comes of that.
    """

    def __init__(
        self,
        me: bytes,
        group: int,
        times: Times,
        orders: ActionQueue,
        candidates: Callable[[float], list[bytes]],
        went_round: Callable[[bytes, float], None],
        open_ring: Callable[[str, float], None],
    ) -> None:
        self.leader = me  # "my leader" (4.1)
        self._machine: Machine[LeaderState, LeaderMove] = Machine(ELECTION)
        self._me = me
        self._group = group
        self._times = times
        self._orders = orders
        self._propose_due: float | None = None
        self._find_due: float | None = None
        self._return_due: float | None = (
            None  # until then a proposal of this leader should have come back (4.6)
        )
        self._alone_due: float | None = None  # when a follower has had no proposal for too long (4.6)
        self._confirm_due: float | None = None  # until then my leader should have been heard to lead
        self._unheard: bytes | None = None  # who was taken for the leader, and not heard
        self._heard_at: float | None = None  # my leader said that it leads, last
        self._vacancy = Vacancy(me, times, self._propose, candidates, self._lost)
        self._circulation = CirculationDetector()
        self._went_round = went_round
        self._open_ring = open_ring

    @property
    def is_leader(self) -> bool:
        return self._machine.state is LeaderState.LEADER

    def is_led(self, now: float) -> bool:
        """Whether I lead, or my leader has said so lately: nobody is believed for long without (4.6)."""
        return self.is_leader or (self._heard_at is not None and now - self._heard_at < self._times.confirm_s)

    # events

    def store_back(self, now: float) -> None:
        self._alone_due = now + self._times.no_leader_s
        self._vacancy.begin(now)

    def store_away(self) -> None:
        self._alone_due = self._confirm_due = self._heard_at = None
        self._vacancy.end()
        self._step_down(LeaderMove.STORE_AWAY)

    def proposed(self, message: Leader, now: float) -> None:
        """Leader(n) with TTL > 0 (4.2)."""
        if message.name < self._me:
            self.propose()
        elif message.name == self._me:
            self._hear_mine(message, now)
        else:
            self._hear_other(message, now)

    def link_broken(self, message: LinkBroken, now: float) -> None:
        """LinkBroken(n) with TTL > 0, n not me (4.4)."""
        self.depose(LeaderMove.LINK_BROKEN, now)
        if self._circulation.passes(message, now) < GONE_AT:
            self._orders.pass_on(message)

    def propose(self) -> None:
        self._propose(self._me)

    def found(self, beacon: Find, now: float) -> bool:
        """FIND of my group. True if my ring is to be opened (4.3)."""
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
        """I lead no more, if I did; nobody is known to lead (4.6)."""
        if self._step_down(move):
            self._alone_due = now + self._times.no_leader_s
        self._vacancy.begin(now)

    # time

    def deadline(self) -> float | None:
        leads = earliest(self._propose_due, self._find_due, self._return_due)
        return earliest(leads, self._alone_due, self._confirm_due, self._vacancy.deadline())

    def on_time(self, now: float) -> None:
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

    # inside

    def _hear_mine(self, message: Leader, now: float) -> None:
        if message.ttl <= OTHERS_TTL:
            self.propose()  # another one did (4.6): not all have heard it
        else:
            self.leader, self._heard_at = self._me, None
            self._elect(now)
            self._return_due = now + self._times.hung_s

    def _hear_other(self, message: Leader, now: float) -> None:
        if message.ttl <= OTHERS_TTL and message.name < self.leader and not self._vacancy.is_on:
            return  # two would be elected
        passes = self._circulation.passes(message, now)
        self._accept(message.name, now)
        if message.ttl > OTHERS_TTL:  # else another one proposes it (4.6)
            self._heard_at = now
        self._step_down(LeaderMove.PROPOSED_ANOTHER)
        if passes >= SUSPECT_AT:
            self._went_round(message.name, now)
            self.leader, self._heard_at = self._me, None
            self._vacancy.begin(now)
        if passes < GONE_AT:
            self._orders.pass_on(message)
        else:
            self._stand(now)  # it has dethroned everybody

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
        """I take myself for the leader that I propose (4.6)."""
        self.leader, self._heard_at = self._me, None
        self.propose()
        self._vacancy.begin(now)

    def _lost(self, now: float) -> None:
        self._find()
        self._open_ring("the ring has no leader", now)

    def _propose(self, name: bytes) -> None:
        self._orders.say(Leader(name, TTL if name == self._me else OTHERS_TTL))

    def _find(self) -> None:
        self._orders.do(SendBeacon(Find(self._group, self._me)))
