"""One node of a ring: tail, head and leader together (ring.md 3, 4). No sockets: `now` comes in, actions go out.

Its owner calls what happened, then does what `take_actions` says, and sends what `next_loop` gives to the successor as
long as that has room. All times are seconds of the owner's clock.
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

FORGOTTEN_S = 600.0  # after which one that is not in my ring is taken for dead
MAX_MEMBERS = 1000  # names that are remembered; those unheard for longest are forgotten


@dataclass(frozen=True, slots=True)
class Break:
    """How a link was lost last."""

    at: float
    side: str  # "inbound" or "outbound"
    why: str


class Node:
    """It begins with its store away (4.7): `store_back` starts it."""

    def __init__(self, name: bytes, group: int, service: bytes, times: Times) -> None:
        self.name = name
        self.group = group
        self.last_break: Break | None = None
        self.breaks = 0
        self.members: OrderedDict[bytes, float] = OrderedDict()  # others, and when heard of last
        self._service = service
        self._silence_s = times.lost_s / 2  # of a predecessor, when the ring is opened as nobody leads it
        self._absent = ExpiringSet(times.absent_s)  # whose proposals went round (4.6)
        self._orders = orders = ActionQueue()
        self.election = Election(
            name,
            group,
            times,
            orders,
            self._candidates,
            self._went_round,
            self._open_ring,
        )
        self.head = Head(name, times, orders)
        self.tail = Tail(times, orders, self._announce, self._opened, self._linked)
        self._starved_tails = StarvedTails(name, times)

    @property
    def is_away(self) -> bool:
        return self.tail.state is TailState.AWAY

    def is_led(self, now: float) -> bool:
        """Whether somebody leads, as far as this node can tell.

        An open ring has no leader (4.4), though each node still knows the last one (4.1).
        """
        is_linked = self.tail.state is TailState.LINKED and self.head.state is HeadState.LINKED
        return self.election.is_leader or (is_linked and self.election.is_led(now))

    # the store (4.7)

    def store_back(self, now: float) -> None:
        if self.is_away:
            self.election.store_back(now)
            self.head.store_back(now)
            self.tail.store_back(now)

    def store_away(self, why: str, now: float) -> None:
        if not self.is_away:
            if self.tail.state is TailState.LINKED or self.head.is_connected:
                self._note_break("both", why, now)
            self.election.store_away()
            self.head.store_away(why)
            self.tail.store_away(why)
            self._starved_tails.clear()

    # beacons

    def beacon(self, beacon: Beacon, now: float) -> bool:
        """False if it is another group's, or my own FIND."""
        if beacon.group != self.group:
            return False
        if self.is_away:
            return True
        if isinstance(beacon, Open):
            self._seen(beacon.node, now)  # its leader may be long gone
            self.head.heard(beacon, self.election.leader, now)
            if beacon.node != self.name:
                self._starved_tails.heard(beacon.node, now)
            return True
        self._seen(beacon.leader, now)
        if self.election.found(beacon, now):
            self._break_off("another ring was found", now)
        return beacon.leader != self.name

    def announcement(self) -> Open | None:
        """What it tells who has not heard of it, while it wants a predecessor (3.4)."""
        is_open = self.tail.state in (TailState.OPEN, TailState.TRIED)
        return self._open(self.election.leader) if is_open else None

    # the outbound side

    def connected(self, now: float) -> None:
        self.head.connected(now)

    def connect_failed(self, now: float) -> None:
        self.head.connect_failed(now)

    def acknowledged(self, now: float) -> None:
        """The successor has answered something."""
        self.head.acknowledged()
        if self.head.successor is not None:
            self._seen(self.head.successor, now)

    def sent(self, now: float) -> None:
        """Something went to the successor."""
        self.head.sent(now)

    def outbound_lost(self, why: str, now: float) -> None:
        if self.head.lost(now):
            self._note_break("outbound", why, now)

    # the inbound side

    def accepted(self, link: int, now: float) -> None:
        """Somebody has connected to the tail; `link` is a number that nothing else has."""
        self.tail.accepted(link, now)

    def heard(self, link: int, now: float) -> bool:
        """A whole message came. False if it is nobody's of whom one is wanted."""
        return self.tail.heard(link, now)

    def received(self, message: Loop, now: float) -> None:
        """A LOOP of the predecessor, after `heard` (2.3)."""
        if isinstance(message, BreakLinkForced):
            self._force("forced by the predecessor", now)
        elif message.ttl == 0:
            if isinstance(message, Leader):
                self.tail.told(message.name)
                self._seen(message.name, now)
        elif isinstance(message, Leader):
            if message.ttl > OTHERS_TTL:
                self._seen(message.name, now)
            self.election.proposed(message, now)
        else:
            self._seen(message.name, now)
            self._absent.clear()  # the ring is another one now
            if message.name != self.name:
                self.election.link_broken(message, now)

    def inbound_lost(self, link: int, why: str, now: float) -> None:
        if self.tail.lost(link, now):
            self._note_break("inbound", why, now)

    # LOOPs for the successor

    def next_loop(self) -> Loop | None:
        return self.head.next_loop()

    def give_back(self, loop: Loop) -> None:
        """The link broke before it was answered: it goes with the next one, unless it was for this one only.

        Of several the last is given back first.
        """
        if not isinstance(loop, BreakLinkForced) and loop.ttl:
            self._orders.say_again(loop)

    # time, and what is to be done

    def deadline(self) -> float | None:
        parts = self.tail, self.head, self.election, self._starved_tails
        return earliest(*(part.deadline() for part in parts))

    def on_time(self, now: float) -> None:
        if self.is_away:
            return
        if why := self.tail.on_time(now):
            self._force(why, now)
        if self._starved_tails.is_due(now) and self.tail.state is TailState.LINKED and self.head.is_connected:
            self._force("another node waits in vain", now)
        self.head.on_time(now)
        self.election.on_time(now)

    def take_actions(self) -> list[Action]:
        return self._orders.take_actions()

    # inside

    def _announce(self, in_vain: bool) -> None:
        leader = self._another_leader() if in_vain else self.election.leader
        self._orders.do(SendBeacon(self._open(leader)))

    def _open(self, leader: bytes) -> Open:
        if len(leader) + len(self.name) + len(self._service) > MAX_NAMES:
            leader = self.name  # an original's name may be too long for my beacon (1.2)
        return Open(self.group, leader, self.name, self._service)

    def _another_leader(self) -> bytes:
        """Than mine, so that the heads of originals take this for another ring (3.8)."""
        if self.election.leader != self.name:
            return self.name
        return self.head.successor or next(reversed(self.members), self.name)

    def _opened(self, now: float) -> None:
        """The tail has no predecessor, since now or still (3.5, 4.4)."""
        self.election.depose(LeaderMove.LINK_BROKEN, now)
        self._orders.say(LinkBroken(self.name))

    def _linked(self, now: float) -> None:
        self.election.propose()

    def _force(self, why: str, now: float) -> None:
        self._note_break("inbound", why, now)
        self.tail.force(why, now)

    def _open_ring(self, why: str, now: float) -> None:
        """Both sides, if nothing comes from before: that is somebody who holds the tail, and no ring (4.6)."""
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
        """Others than me who might lead, if my ring may be closed (4.6)."""
        if self.tail.state is not TailState.LINKED or not self.head.is_connected:
            return []
        return [name for name in self.members if name > self.name and not self._absent.has(name, now)]

    def _went_round(self, name: bytes, now: float) -> None:
        """It is not in my ring: it is in another one, or it has died."""
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
