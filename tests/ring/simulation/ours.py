"""One life of a node of ours: what a server does around `Node`, `Relay` and `Window` (ring.md 2, 4, 5)."""

from __future__ import annotations

from protos.ring import (
    Beacon,
    CloseInbound,
    CloseOutbound,
    Dial,
    Frame,
    Loop,
    Node,
    Operation,
    Relay,
    SendBeacon,
    TailState,
    Times,
    Window,
    encode_frame,
)
from tests.ring.simulation.link import Link, Wire
from tests.ring.simulation.network import Surroundings
from tests.ring.simulation.routing import Routing
from tests.ring.simulation.store import Disk, Outgoing, Store

GROUP = 7
PORT = b"8085"
QUEUE = b"jobs"  # queues that one store serves


class Ours:
    """A node of ours, called by its links and the network; `Disk` and `Store` outlive it."""

    is_original = False

    def __init__(
        self,
        world: Surroundings,
        name: bytes,
        times: Times,
        disk: Disk,
        store: Store,
        window: int,
        forwards: bool,
    ) -> None:
        self.name = name
        self.is_alive = True
        self.out: Link | None = None
        self.disk = disk
        disk.lives += 1
        seed = b"%d" % disk.lives
        self.node = Node(name, GROUP, PORT, times)
        self.relay = Relay(name, remembered=1000, seed=seed)
        self.routing = Routing(self, self.relay, disk, store, forwards)
        self._world = world
        self._clock = world.clock
        self._network = world.network
        self._ack_s = times.ack_s
        self._window_size = window
        self._window: Window[Loop | Outgoing] = Window(window, times.ack_s)
        self._users_sent = 0  # of `disk.outgoing`, from the left: unanswered
        self._inbound: dict[int, Link] = {}
        self._wake_at: float | None = None
        self._refuses = False
        self._led = False
        for outgoing in disk.outgoing:
            if outgoing.is_mine:
                self.relay.put_on(outgoing.payload)

    @property
    def is_leader(self) -> bool:
        return self.node.election.is_leader

    @property
    def leader(self) -> bytes:
        return self.node.election.leader

    @property
    def successor(self) -> Link | None:
        return self.out if self.out is not None and self.node.head.is_connected else None

    @property
    def predecessor(self) -> int | None:
        """Return the number of the current link."""
        return self.node.tail.link if self.node.tail.state is TailState.LINKED else None

    # the store

    def start(self) -> None:
        self.node.store_back(self._clock.now)
        self._obey()

    def store_refuses(self) -> None:
        """Make the store refuse, which is noticed at the next use, or a moment later."""
        self._refuses = True
        self._clock.after(1.0, self._notice)

    def store_is_back(self) -> None:
        if self.is_alive:
            self._refuses = False
            self.start()

    def _notice(self) -> None:
        if self.is_alive and self._refuses:
            self.node.store_away("the store refuses", self._clock.now)
            self._obey()

    # the application

    def put_on(self, payload: bytes) -> bool:
        """Accept a message of the application; return whether it was: it is in the store then."""
        if self._refuses:
            return False
        self.disk.accepted.append(payload)
        self.begin(payload)
        self._obey()
        return True

    def push(self, request_id: bytes) -> bool:
        if self._refuses:
            return False
        self.begin(encode_frame(Frame(Operation.PUSH, self.name, QUEUE, b"", request_id)))
        self._obey()
        return True

    def begin(self, payload: bytes) -> None:
        self.relay.put_on(payload)
        self.disk.outgoing.append(Outgoing(payload, is_mine=True))

    # beacons

    def hear(self, beacon: Beacon) -> None:
        self.node.beacon(beacon, self._clock.now)
        self._obey()

    # the outbound side

    def dialled(self, link: Link) -> None:
        if link is self.out:
            self._window = Window(self._window_size, self._ack_s)
            self._users_sent = 0
            self.node.connected(self._clock.now)
            self._obey()

    def not_dialled(self, link: Link) -> None:
        if link is self.out:
            self.out = None
            self.node.connect_failed(self._clock.now)
            self._obey()

    def answered(self, link: Link) -> None:
        if link is not self.out:
            return
        for item in self._window.acknowledged(1, self._clock.now):
            if isinstance(item, Outgoing):
                assert self.disk.outgoing.popleft() is item
                self._users_sent -= 1
        self.node.acknowledged(self._clock.now)
        self._obey()

    def outbound_gone(self, link: Link, why: str) -> None:
        if link is self.out:
            self.out = None
            self.node.outbound_lost(why, self._clock.now)
            self.give_back()
            self._obey()

    def give_back(self) -> None:
        for item in reversed(self._window.unacknowledged()):
            if not isinstance(item, Outgoing):
                self.node.give_back(item)
        self._window = Window(self._window_size, self._ack_s)
        self._users_sent = 0

    # the inbound side

    def listens(self, service: bytes) -> bool:
        return service == PORT

    def accept(self, link: Link) -> None:
        self._inbound[link.number] = link
        self.node.accepted(link.number, self._clock.now)
        self._obey()

    def came(self, link: Link, message: Wire) -> None:
        if self._refuses and isinstance(message, bytes):
            self._notice()
            return
        if self.node.heard(link.number, self._clock.now):
            link.answer()
            if isinstance(message, bytes):
                self.routing.take(message, is_alone=link.head is self)
            else:
                self.node.received(message, self._clock.now)
        self._obey()

    def inbound_gone(self, link: Link, why: str) -> None:
        if self._inbound.pop(link.number, None) is not None:
            self.node.inbound_lost(link.number, why, self._clock.now)
            self._obey()

    # orders, time

    def _obey(self) -> None:
        for action in self.node.take_actions():
            match action:
                case SendBeacon(beacon):
                    self._network.broadcast(self.name, beacon)
                case Dial(node, service):
                    self.out = self._network.dial(self, node, service)
                    self._world.note(self.name, "dials", node)
                case CloseOutbound(why):
                    self._close_outbound(why)
                case CloseInbound(number, why):
                    self._world.note(self.name, "closes its inbound side:", why)
                    self._inbound.pop(number).close_tail()
        self._send()
        self._set_alarm()
        if self.is_leader is not self._led:
            self._led = self.is_leader
            self._world.note(self.name, "leads" if self._led else "leads no more")

    def _close_outbound(self, why: str) -> None:
        self._world.note(self.name, "closes its outbound side:", why)
        link, self.out = self.out, None
        if link is not None:
            link.close_head()
        self.give_back()

    def _send(self) -> None:
        link = self.out
        if link is None or not self.node.head.is_connected:
            return
        now = self._clock.now
        while self._window.room and link.head_is_open:
            loop = self.node.next_loop()
            if loop is not None:
                self._window.sent(loop, now)
                link.send(loop)
            elif self._users_sent < len(self.disk.outgoing) and not self._refuses:
                outgoing = self.disk.outgoing[self._users_sent]
                self._users_sent += 1
                self._window.sent(outgoing, now)
                link.send(outgoing.payload)
            else:
                return
            self.node.sent(now)

    def _set_alarm(self) -> None:
        due = self.node.deadline()
        late = self._window.deadline()
        if late is not None and (due is None or late < due):
            due = late
        if due is not None and (self._wake_at is None or due < self._wake_at):
            self._wake_at = due
            self._clock.at(due, self._wake, due)

    def _wake(self, due: float) -> None:
        if not self.is_alive or due != self._wake_at:
            return
        self._wake_at = None
        now = self._clock.now
        if self.out is not None and self._window.is_late(now):
            self.out.close_head()
            self.outbound_gone(self.out, "no A came in time")
        self.node.on_time(now)
        self._obey()
