"""One node of a ring: tail, head and election together (ring.md 3, 4), without I/O.

The owner reports events, then carries out what `take_actions` returns, and sends what `next_loop` returns to the
successor as long as that has room. All times are seconds of the owner's clock.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from protos.ring.actions import Action, ActionQueue, SendBeacon
from protos.ring.election import Election, LeaderMove
from protos.ring.head import Head, HeadState
from protos.ring.lru import ExpiringSet
from protos.ring.messages import (
    MAX_NAMES,
    OTHERS_TTL,
    Beacon,
    BreakLinkForced,
    Leader,
    LinkBroken,
    Loop,
    Open,
)
from protos.ring.starved_tails import StarvedTails
from protos.ring.table import earliest
from protos.ring.tail import Tail, TailState
from protos.ring.times import Times

FORGOTTEN_S = 600.0  # after which a node that is not in this ring is taken for dead
MAX_MEMBERS = 1000  # names remembered, without those unheard for longest


@dataclass(frozen=True, slots=True)
class Break:
    """How a link was lost last."""

    at: float  # seconds, of the owner's clock
    side: str  # "inbound" or "outbound"
    why: str  # for the log


class Node:
    """A node. It starts with its store away (4.7): call `store_back`."""

    def __init__(self, name: bytes, group: int, service: bytes, times: Times) -> None:
        self.name = name  # of this node (1.2)
        self.group = group  # 1 to MAX_GROUP
        self.last_break: Break | None = None  # how the last link was lost
        self.breaks = 0  # number of links lost
        # other nodes, and when each was last heard of
        self.members: OrderedDict[bytes, float] = OrderedDict()
        self._service = service
        self._silence_s = times.lost_s / 2  # of a predecessor that is closed as well (4.6)
        self._absent = ExpiringSet(times.absent_s)  # names whose proposals went around (4.6)
        self._action_queue = action_queue = ActionQueue()
        # the election of the leader, as this node knows it
        self.election = Election(
            name,
            group,
            times,
            action_queue,
            self._candidates,
            self._went_round,
            self._open_ring,
        )
        self.head = Head(name, times, action_queue)  # the outbound side: its `state` and `successor`
        # the inbound side: its `state`, `link` and `name`
        self.tail = Tail(times, action_queue, self._announce, self._opened, self._linked)
        self._starved_tails = StarvedTails(name, times)

    @property
    def is_away(self) -> bool:
        """True while the store cannot be used, so that the node is in no ring."""
        return self.tail.state is TailState.AWAY

    def is_led(self, now: float) -> bool:
        """Return whether there is a leader, as far as this node knows.

        An open ring has no leader (4.4), though each node still knows the last one (4.1).
        """
        is_linked = self.tail.state is TailState.LINKED and self.head.state is HeadState.LINKED
        return self.election.is_leader or (is_linked and self.election.is_led(now))

    # the store (4.7)

    def store_back(self, now: float) -> None:
        """Start, or return to the ring (4.7)."""
        if self.is_away:
            self.election.store_back(now)
            self.head.store_back(now)
            self.tail.store_back(now)

    def store_away(self, why: str, now: float) -> None:
        """Leave the ring (4.7)."""
        if not self.is_away:
            if self.tail.state is TailState.LINKED or self.head.is_connected:
                self._note_break("both", why, now)
            self.election.store_away()
            self.head.store_away(why)
            self.tail.store_away(why)
            self._starved_tails.clear()

    def beacon(self, beacon: Beacon, now: float) -> bool:
        """Handle a beacon; return False for another group's, and for this node's own FIND."""
        if beacon.group != self.group:
            return False
        if self.is_away:
            return True
        if isinstance(beacon, Open):
            self._seen(beacon.node, now)  # the node, not its leader, which may have left
            self.head.heard(beacon, self.election.leader, now)
            if beacon.node != self.name:
                self._starved_tails.heard(beacon.node, now)
            return True
        self._seen(beacon.leader, now)
        if self.election.found(beacon, now):
            self._break_off("another ring was found", now)
        return beacon.leader != self.name

    def announcement(self) -> Open | None:
        """Return the OPEN to send to nodes that have not heard it; None if no predecessor is wanted (3.4)."""
        is_open = self.tail.state in (TailState.OPEN, TailState.TRIED)
        return self._open(self.election.leader) if is_open else None

    def connected(self, now: float) -> None:
        """Note that the connection to a successor is open."""
        self.head.connected(now)

    def connect_failed(self, now: float) -> None:
        """Note that the successor could not be connected to."""
        self.head.connect_failed(now)

    def acknowledged(self, now: float) -> None:
        """Note that the successor has answered a message."""
        self.head.acknowledged()
        if self.head.successor is not None:
            self._seen(self.head.successor, now)

    def sent(self, now: float) -> None:
        """Note that a message was sent to the successor."""
        self.head.sent(now)

    def outbound_lost(self, why: str, now: float) -> None:
        """Note that the connection to the successor is gone."""
        if self.head.lost(now):
            self._note_break("outbound", why, now)

    def accepted(self, link: int, now: float) -> None:
        """Note a new connection to the tail; `link` is a unique number."""
        self.tail.accepted(link, now)

    def heard(self, link: int, now: float) -> bool:
        """Note a whole message on a connection; return False if none is wanted from it."""
        return self.tail.heard(link, now)

    def received(self, message: Loop, now: float) -> None:
        """Handle a LOOP of the predecessor, after `heard` (2.3)."""
        if isinstance(message, BreakLinkForced):
            self._force("forced by the predecessor", now)
        elif message.ttl == 0:
            if isinstance(message, Leader):
                self.tail.named(message.name)
                self._seen(message.name, now)
        elif isinstance(message, Leader):
            if message.ttl > OTHERS_TTL:
                self._seen(message.name, now)
            self.election.proposed(message, now)
        else:
            self._seen(message.name, now)
            self._absent.clear()  # the ring has changed
            if message.name != self.name:
                self.election.link_broken(message, now)

    def inbound_lost(self, link: int, why: str, now: float) -> None:
        """Note that a connection to the tail is gone."""
        if self.tail.lost(link, now):
            self._note_break("inbound", why, now)

    def next_loop(self) -> Loop | None:
        """Remove and return the next LOOP for the successor."""
        return self.head.next_loop()

    def give_back(self, loop: Loop) -> None:
        """Send an unanswered LOOP on the next link, unless it was meant for this one only.

        Of several LOOPs the last is given back first.
        """
        if not isinstance(loop, BreakLinkForced) and loop.ttl:
            self._action_queue.resend(loop)

    def deadline(self) -> float | None:
        """Return when `on_time` is due."""
        parts = self.tail, self.head, self.election, self._starved_tails
        return earliest(*(part.deadline() for part in parts))

    def on_time(self, now: float) -> None:
        """Do what is due."""
        if self.is_away:
            return
        if why := self.tail.on_time(now):
            self._force(why, now)
        if self._starved_tails.is_due(now) and self.tail.state is TailState.LINKED and self.head.is_connected:
            self._force("another node waits in vain", now)
        self.head.on_time(now)
        self.election.on_time(now)

    def take_actions(self) -> list[Action]:
        """Remove and return all actions."""
        return self._action_queue.take_actions()

    def _announce(self, in_vain: bool) -> None:
        leader = self._another_leader() if in_vain else self.election.leader
        self._action_queue.do(SendBeacon(self._open(leader)))

    def _open(self, leader: bytes) -> Open:
        if len(leader) + len(self.name) + len(self._service) > MAX_NAMES:
            leader = self.name  # an original's name may be too long for this beacon (1.2)
        return Open(self.group, leader, self.name, self._service)

    def _another_leader(self) -> bytes:
        """Return a name other than the leader's, so that heads of originals take this for another ring (3.8)."""
        if self.election.leader != self.name:
            return self.name
        return self.head.successor or next(reversed(self.members), self.name)

    def _opened(self, now: float) -> None:
        """Tell the ring that the tail has no predecessor, or still has none (3.5, 4.4)."""
        self.election.depose(LeaderMove.LINK_BROKEN, now)
        self._action_queue.send(LinkBroken(self.name))

    def _linked(self, now: float) -> None:
        self.election.propose()

    def _force(self, why: str, now: float) -> None:
        self._note_break("inbound", why, now)
        self.tail.force(why, now)

    def _open_ring(self, why: str, now: float) -> None:
        """Break the outbound side, and a silent predecessor, which only blocks the tail (4.6)."""
        self._break_off(why, now)
        if self.tail.is_silent_since(now - self._silence_s):
            self._force(f"{why}, and the predecessor is silent", now)

    def _break_off(self, why: str, now: float) -> None:
        if self.head.is_connected:
            self._note_break("outbound", why, now)
        self.head.break_off(why, now)

    def _note_break(self, side: str, why: str, now: float) -> None:
        self.breaks += 1
        self.last_break = Break(now, side, why)

    def _candidates(self, now: float) -> list[bytes]:
        """Return other nodes that might lead, if the ring may be closed (4.6)."""
        if self.tail.state is not TailState.LINKED or not self.head.is_connected:
            return []
        return [name for name in self.members if name > self.name and not self._absent.has(name, now)]

    def _went_round(self, name: bytes, now: float) -> None:
        """Do not propose a name whose proposal went around: the node is in another ring, or dead."""
        self._absent.mark(name, now)
        if now - self.members.get(name, now) > FORGOTTEN_S:
            del self.members[name]

    def _seen(self, name: bytes, now: float) -> None:
        if name == self.name:
            return
        self.members.pop(name, None)
        self.members[name] = now
        if len(self.members) > MAX_MEMBERS:
            self.members.popitem(last=False)
