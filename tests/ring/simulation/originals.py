"""One life of a node by the originals' rules, [R] in ring.md: no window and no limits.

Messages for its successor are in memory in one queue; those under way when a link breaks are lost.
"""

from __future__ import annotations

from collections import Counter, deque
from random import Random

from protos.ring import Beacon, BreakLinkForced, Find, Leader, LinkBroken, Open
from tests.ring.simulation.link import Link, Wire
from tests.ring.simulation.network import Surroundings
from tests.ring.simulation.ours import GROUP

ORIGINAL_TTL = 65025  # of LOOPs that original nodes begin (2.3)
OPEN_S = 30.0  # 3.5
ALONE_S = 300.0
OWN_RING_S = 60.0  # 3.6 b, from
SELF_S = 120.0  # 3.6 b, until; c
FIND_S = 60.0  # 4.3
PROPOSE_S = 300.0  # 4.2


class Original:
    """An original. It listens only while it has no predecessor, each time on another port."""

    is_original = True

    def __init__(self, world: Surroundings, name: bytes, rng: Random, answers: float) -> None:
        self.name = name
        self.is_alive = True
        self.leader = name
        self.is_leader = False
        self.out: Link | None = None
        self.inbound: Link | None = None
        self.inbox: Counter[bytes] = Counter()
        self._outgoing: deque[Wire] = deque()
        self._is_unanswered = False
        self._has_sent_user = False
        self._is_connected = False
        self._waiting_since = world.clock.now
        self._port: bytes | None = None
        self._opened = 0  # how many times its tail was open
        self._led = 0  # how many times it led
        self._world = world
        self._clock = world.clock
        self._network = world.network
        self._rng = rng
        self._answers = answers  # how often it answers an OPEN by FIND, while it leads

    @property
    def successor(self) -> Link | None:
        return self.out if self._is_connected else None

    @property
    def predecessor(self) -> int | None:
        return self.inbound.number if self.inbound is not None else None

    @property
    def users_waiting(self) -> int:
        return sum(isinstance(message, bytes) for message in self._outgoing) + self._has_sent_user

    # the tail (3.5)

    def start(self) -> None:
        self._open()

    def _open(self) -> None:
        self.inbound = None
        self._opened += 1
        self._port = b"%d" % self._rng.randint(9000, 9900)
        self._alone(self._opened)
        self._announce(self._opened)

    def _alone(self, opened: int) -> None:
        """Stop leading, and send LinkBroken every 300 s."""
        if self.is_alive and opened == self._opened and self.inbound is None:
            self._depose()
            self._put(LinkBroken(self.name, ORIGINAL_TTL))
            self._clock.after(ALONE_S, self._alone, opened)

    def _announce(self, opened: int) -> None:
        if self.is_alive and opened == self._opened and self._port is not None:
            self._network.broadcast(self.name, Open(GROUP, self.leader, self.name, self._port))
            self._clock.after(OPEN_S, self._announce, opened)

    def listens(self, service: bytes) -> bool:
        return service == self._port

    def accept(self, link: Link) -> None:
        self.inbound, self._port = link, None
        self._put(Leader(self.name, ORIGINAL_TTL))

    def inbound_gone(self, link: Link, why: str) -> None:
        if link is self.inbound:
            self._world.note(self.name, "loses its predecessor:", why)
            self._open()

    # the head (3.6)

    def hear(self, beacon: Beacon) -> None:
        if isinstance(beacon, Open):
            self._hear_open(beacon)
            if self.is_leader and self._rng.random() < self._answers:
                self._find()
        elif self.is_leader and beacon.leader != self.name:
            self._find()
            self._depose()
            self._break_off()

    def _hear_open(self, beacon: Open) -> None:
        if self.out is not None:
            return
        waited = self._clock.now - self._waiting_since
        if beacon.node == self.name:
            connects = waited > SELF_S
        elif beacon.leader == self.leader:
            connects = OWN_RING_S < waited < SELF_S
        else:
            connects = True
        if connects:
            self._world.note(self.name, "dials", beacon.node)
            self.out = self._network.dial(self, beacon.node, beacon.service)

    def dialled(self, link: Link) -> None:
        if link is self.out:
            self._is_connected = True
            self._send()

    def not_dialled(self, link: Link) -> None:
        if link is self.out:
            self.out = None

    def outbound_gone(self, link: Link, why: str) -> None:
        if link is self.out:
            self._world.note(self.name, "loses its successor:", why)
            self._lose()

    def _break_off(self) -> None:
        if self._is_connected and self.out is not None:
            self._world.note(self.name, "closes its outbound side")
            self.out.close_head()
            self._lose()

    def _lose(self) -> None:
        self.out = None
        self._is_connected = self._is_unanswered = self._has_sent_user = False
        self._waiting_since = self._clock.now

    # messages

    def put_on(self, payload: bytes) -> bool:
        self._put(payload)
        return True

    def _put(self, message: Wire) -> None:
        self._outgoing.append(message)
        self._send()

    def _send(self) -> None:
        if self._is_connected and self.out is not None and self._outgoing and not self._is_unanswered:
            message = self._outgoing.popleft()
            self._is_unanswered, self._has_sent_user = True, isinstance(message, bytes)
            self.out.send(message)

    def answered(self, link: Link) -> None:
        if link is self.out:
            self._is_unanswered = self._has_sent_user = False
            self._send()

    def came(self, link: Link, message: Wire) -> None:
        link.answer()
        if isinstance(message, bytes):
            self.inbox[message] += 1
            self._put(message)  # actions of its application
        elif isinstance(message, BreakLinkForced):
            link.close_tail()
            self._open()
        elif message.ttl:
            self._loop(message)

    def _loop(self, message: Leader | LinkBroken) -> None:
        if isinstance(message, LinkBroken):
            if message.name != self.name:
                self._depose()
                self._pass_on(message)
        elif message.name == self.name:
            self.leader = self.name
            self._lead()
        elif message.name > self.name:
            self.leader = message.name
            self._depose()
            self._pass_on(message)

    def _pass_on(self, message: Leader | LinkBroken) -> None:
        self._put(type(message)(message.name, message.ttl - 1))

    # leader (4)

    def _lead(self) -> None:
        if not self.is_leader:
            self._world.note(self.name, "leads")
        self.is_leader = True
        self._led += 1
        self._find_again(self._led)
        self._clock.after(PROPOSE_S, self._propose_again, self._led)

    def _depose(self) -> None:
        if self.is_leader:
            self._world.note(self.name, "leads no more")
        self.is_leader = False
        self._led += 1

    def _find(self) -> None:
        self._network.broadcast(self.name, Find(GROUP, self.name))

    def _find_again(self, led: int) -> None:
        if self.is_alive and led == self._led:
            self._find()
            self._clock.after(FIND_S, self._find_again, led)

    def _propose_again(self, led: int) -> None:
        if self.is_alive and led == self._led:
            self._put(Leader(self.name, ORIGINAL_TTL))
            self._clock.after(PROPOSE_S, self._propose_again, led)
