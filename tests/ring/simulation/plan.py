"""The plan of one seed: its nodes, when they start, the faults, and the traffic of their applications."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from random import Random

FAULTS_FROM_S, FAULTS_FOR_S = 60.0, 400.0
MIN_ALIVE = 2


class Fault(Enum):
    """A fault and how it ends."""

    KILL = "its process is killed"
    OFF = "its machine loses power"
    STOP = "its process is stopped"
    RESTART = "it starts again"
    CUT = "the network is partitioned"
    HEAL = "the network is whole again"
    REFUSE = "its store refuses"
    BACK = "its store is back"


@dataclass(frozen=True, slots=True)
class Event:
    time: float
    fault: Fault
    nodes: tuple[int, ...] = ()  # one node, or those on one side of a partition


@dataclass(frozen=True, slots=True)
class Traffic:
    time: float
    node: int
    is_push: bool  # else a USER without a queue operation


@dataclass(slots=True)
class Plan:
    """A plan with nodes numbered from 0 and times in virtual seconds."""

    seed: int
    names: list[bytes]
    originals: frozenset[int]
    serves: frozenset[int]  # reach the store that has the queue
    starts: list[float]
    window: int
    forwards: bool  # ring.md 5.5, forward_user
    answers: float  # how often a leading original answers an OPEN by FIND
    beacon_loss: float = 0.2
    events: list[Event] = field(default_factory=list)
    traffic: list[Traffic] = field(default_factory=list)

    @property
    def last_fault(self) -> float:
        return max([event.time for event in self.events] + self.starts)


def plan_of(seed: int) -> Plan:
    """Return a plan of 3 to 20 nodes, 0 to 5 of them originals, fewer than half."""
    rng = Random(seed)
    size = rng.randint(3, 20)
    count = rng.choice([0, 0, rng.randint(1, 5)])
    plan = _quiet(seed, rng, size, min(count, (size - 1) // 2))
    _add_faults(plan, rng)
    _add_traffic(plan, rng)
    return plan


def quiet_plan(seed: int, size: int, originals: int = 0, beacon_loss: float = 0.2) -> Plan:
    """Return a plan of nodes that start without faults, except lost beacons."""
    plan = _quiet(seed, Random(seed), size, originals)
    plan.beacon_loss = beacon_loss
    return plan


def _quiet(seed: int, rng: Random, size: int, originals: int) -> Plan:
    names = [b"h%02d:%d" % (number, rng.randint(100, 9999)) for number in rng.sample(range(100), size)]
    are_originals = frozenset(rng.sample(range(size), originals))
    ours = [number for number in range(size) if number not in are_originals]
    serves = frozenset([rng.choice(ours or range(size)), *(number for number in ours if rng.random() < 0.2)])
    at_once = rng.random() < 0.3
    return Plan(
        seed,
        names,
        are_originals,
        serves,
        [0.0 if at_once else rng.uniform(0.0, 60.0) for _ in names],
        window=rng.choice([1, 1, 4, 64]),
        forwards=rng.random() < 0.6,
        answers=rng.choice([0.0, 0.5, 1.0]),
    )


def _add_faults(plan: Plan, rng: Random) -> None:
    faults = _Faults(plan, rng)
    for _ in range(rng.randint(1, 8)):
        time = rng.uniform(FAULTS_FROM_S, FAULTS_FROM_S + FAULTS_FOR_S)
        match rng.choice(["kill", "kill", "cut", "refuse"]):
            case "kill":
                faults.kill(time)
            case "cut":
                faults.cut(time)
            case _:
                faults.refuse(time)
    if not plan.events:  # as in an original's store
        faults.kill(FAULTS_FROM_S)
    plan.events.sort(key=lambda event: event.time)


class _Faults:
    """Faults of a plan. A node or network has one fault at a time."""

    def __init__(self, plan: Plan, rng: Random) -> None:
        self._plan = plan
        self._rng = rng
        self._busy: set[int] = set()
        self._gone: set[int] = set()
        self._is_cut = False

    def kill(self, time: float) -> None:
        node = self._any_node()
        if node is None:
            return
        fault = self._rng.choice([Fault.KILL, Fault.KILL, Fault.OFF])
        self._plan.events.append(Event(time, fault, (node,)))
        if self._rng.random() < 0.75 or not self._may_go(node):
            back = time + self._rng.choice([0.0, 1.0, 20.0, 150.0]) + self._rng.random()
            self._plan.events.append(Event(back, Fault.RESTART, (node,)))
        else:
            self._gone.add(node)

    def cut(self, time: float) -> None:
        if self._is_cut:
            return
        self._is_cut = True
        size = len(self._plan.names)
        side = tuple(sorted(self._rng.sample(range(size), self._rng.randint(1, size - 1))))
        self._plan.events.append(Event(time, Fault.CUT, side))
        heals = time + self._rng.choice([2.0, 20.0, 100.0, 250.0]) * (0.5 + self._rng.random())
        self._plan.events.append(Event(heals, Fault.HEAL))

    def refuse(self, time: float) -> None:
        node = self._any_node()
        if node is None or node in self._plan.originals:
            return
        self._plan.events.append(Event(time, Fault.REFUSE, (node,)))
        self._plan.events.append(Event(time + self._rng.uniform(0.1, 100.0), Fault.BACK, (node,)))

    def _any_node(self) -> int | None:
        free = [number for number in range(len(self._plan.names)) if number not in self._busy]
        if not free:
            return None
        node = self._rng.choice(free)
        self._busy.add(node)
        return node

    def _may_go(self, node: int) -> bool:
        left = set(range(len(self._plan.names))) - self._gone - {node}
        return len(left) > MIN_ALIVE and len(left - self._plan.originals) > len(left & self._plan.originals)


def _add_traffic(plan: Plan, rng: Random) -> None:
    ours = [number for number in range(len(plan.names)) if number not in plan.originals]
    until = plan.last_fault + 50.0
    for _ in range(rng.randint(0, 16)):
        node = rng.choice(ours)
        plan.traffic.append(Traffic(rng.uniform(10.0, until), node, rng.random() < 0.5))
    # Bursts around faults: only messages under way can be lost.
    for event in plan.events:
        node = rng.choice(ours)
        for _ in range(rng.randint(0, 4)):
            time = event.time + rng.uniform(-0.05, 0.05)
            plan.traffic.append(Traffic(time, node, rng.random() < 0.7))
