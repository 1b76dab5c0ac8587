"""Carry out a plan: nodes live and die, the network breaks and heals, applications send."""

from __future__ import annotations

from random import Random

from protos.ring import Times
from tests.ring.simulation.clock import Clock
from tests.ring.simulation.network import Network
from tests.ring.simulation.originals import Original
from tests.ring.simulation.ours import QUEUE, Ours
from tests.ring.simulation.plan import Event, Fault, Plan, Traffic
from tests.ring.simulation.store import Disk, Store

Life = Ours | Original


class World:
    """A simulated world.

    `story`, if it is a list, records events. `keeps_ids`: whether stores keep request ids (ring.md 5.4).
    """

    def __init__(
        self,
        plan: Plan,
        times: Times | None = None,
        keeps_ids: bool = True,
        story: list[str] | None = None,
    ) -> None:
        self.plan = plan
        self.clock = Clock()
        self.story = story
        self.lives: dict[int, Life] = {}  # living nodes
        self.network = Network(self.clock, Random(plan.seed + 1), plan.beacon_loss)
        self.disks = {number: Disk() for number in range(len(plan.names)) if number not in plan.originals}
        self.serving, self.other = Store({QUEUE}, keeps_ids), Store(set(), keeps_ids)
        self.pushed: dict[bytes, int] = {}  # requesting node by request id
        self._rng = Random(plan.seed + 2)
        self._times = times or Times()
        self._names = list(plan.names)
        self._sides: dict[bytes, int] = {}
        self._count = 0
        for number, time in enumerate(plan.starts):
            self.clock.at(time, self._start, number)
        for event in plan.events:
            self.clock.at(event.time, self.happen, event)
        for traffic in plan.traffic:
            self.clock.at(traffic.time, self._send, traffic)

    def note(self, name: bytes, what: str, other: bytes | str = "") -> None:
        if self.story is not None:
            other = other if isinstance(other, str) else other.decode()
            self.story.append(f"{self.clock.now:9.3f}  {name.decode()} {what} {other}".rstrip())

    # traffic

    def put_on(self, number: int, payload: bytes | None = None) -> bytes | None:
        """Send a USER of this node's application, a unique one by default; None if it was not accepted."""
        life = self.lives.get(number)
        self._count += 1
        payload = b"news %d" % self._count if payload is None else payload
        return payload if life is not None and life.put_on(payload) else None

    def push(self, number: int) -> bytes | None:
        """Push through the ring if this node cannot serve the queue itself; return the request id if accepted."""
        life = self.lives.get(number)
        if not isinstance(life, Ours) or number in self.plan.serves:
            return None
        self._count += 1
        request_id = b"request %08d" % self._count
        if not life.push(request_id):
            return None
        self.pushed[request_id] = number
        return request_id

    def _send(self, traffic: Traffic) -> None:
        if traffic.is_push:
            self.push(traffic.node)
        else:
            self.put_on(traffic.node)

    # lives

    def _start(self, number: int) -> None:
        name = self._names[number]
        life = self._original(name) if number in self.plan.originals else self._ours(number, name)
        self.lives[number] = life
        self.network.hosts[name] = life
        self.note(name, "starts", "as an original" if life.is_original else "")
        life.start()

    def _ours(self, number: int, name: bytes) -> Ours:
        store = self.serving if number in self.plan.serves else self.other
        plan = self.plan
        return Ours(self, name, self._times, self.disks[number], store, plan.window, plan.forwards)

    def _original(self, name: bytes) -> Original:
        return Original(self, name, self._rng, self.plan.answers)

    def happen(self, event: Event) -> None:
        number = event.nodes[0] if event.nodes else 0
        name = self._names[number] if event.fault not in (Fault.CUT, Fault.HEAL) else b"-"
        nodes = b" ".join(self._names[each] for each in event.nodes) if event.fault is Fault.CUT else b""
        self.note(name, event.fault.value, nodes)
        life = self.lives.get(number)
        match event.fault:
            case Fault.KILL if life is not None:
                self.network.end_process(self.lives.pop(number))
            case Fault.OFF if life is not None:
                self.network.switch_off(self.lives.pop(number))
            case Fault.STOP if life is not None:
                self.network.stop_process(self.lives.pop(number))
            case Fault.RESTART if life is None:
                self._restart(number)
            case Fault.CUT:
                self._sides = {self._names[each]: 1 for each in event.nodes}
                self.network.partition(self._sides)
            case Fault.HEAL:
                self._sides = {}
                self.network.partition(self._sides)
            case Fault.REFUSE if isinstance(life, Ours):
                life.store_refuses()
            case Fault.BACK if isinstance(life, Ours):
                life.store_is_back()

    def _restart(self, number: int) -> None:
        """Give a restarted original a new name: that of its process (ring.md 1.2)."""
        old = self._names[number]
        self.network.switch_on(old)
        if number in self.plan.originals:
            host, _, process = old.partition(b":")
            self._names[number] = b"%s:%d" % (host, int(process) + 1)
            if old in self._sides:
                self._sides[self._names[number]] = self._sides[old]
        self._start(number)
