"""How the queues of a store stand, as metrics: of one process that looks at them, as it is the same for all others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from services.kit.metrics import state_measures
from services.kit.metrics.queue_counters import QueueRises
from services.kit.metrics.queue_names import OTHER, label_of

Family = GaugeMetricFamily | CounterMetricFamily

SHOWN = {
    "ready": state_measures.READY,
    "in_flight": state_measures.IN_FLIGHT,
    "dead": state_measures.DEAD,
    "octets": state_measures.BYTES,
    "oldest_age_s": state_measures.OLDEST,
    "used": state_measures.USED,
}
OF_ONE = ("oldest_age_s", "used")  # of several queues the greatest counts, as they have no sum
COUNTED = {
    "died": state_measures.DIED,
    "dead_overflowed": state_measures.DEAD_TRIMMED,
    "redriven": state_measures.REDRIVEN,
    "purged": state_measures.PURGED,
    "emptied": state_measures.EMPTIED,
    "expired": state_measures.EXPIRED,
    "duplicates": state_measures.DUPLICATES,
    "fenced": state_measures.FENCED,
}


class QueueState(Protocol):
    """One queue, as a look found it."""

    @property
    def ready(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def dead(self) -> int: ...
    @property
    def died(self) -> int:
        """Since it was made."""

    @property
    def dead_overflowed(self) -> int:
        """Dead letters that were dropped as there were too many, since it was made."""

    @property
    def redriven(self) -> int:
        """This and what follows: since it was made."""

    @property
    def purged(self) -> int: ...
    @property
    def emptied(self) -> int: ...
    @property
    def expired(self) -> int: ...
    @property
    def duplicates(self) -> int: ...
    @property
    def fenced(self) -> int: ...
    @property
    def octets(self) -> int: ...
    @property
    def oldest_age_s(self) -> float: ...
    @property
    def used(self) -> float:
        """Part of its bounds."""


class States(Protocol):
    """By the name of the queue."""

    @property
    def queues(self) -> Mapping[str, QueueState]: ...
    @property
    def unreadable(self) -> Collection[str]:
        """Those that are there, and nobody can say how they stand."""


@dataclass(slots=True)
class Sum:
    """What is shown under one name."""

    ready: int = 0
    in_flight: int = 0
    dead: int = 0
    octets: int = 0
    oldest_age_s: float = 0.0
    used: float = 0.0

    def add(self, state: QueueState) -> None:
        for one in fields(self):
            value, more = getattr(self, one.name), getattr(state, one.name)
            setattr(self, one.name, max(value, more) if one.name in OF_ONE else value + more)


class QueueStates(Collector):
    """`tell` what was found; `most` queues are named: those that hold most when there is room for a name, for as long
    as they are there."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._named: set[str] = set()  # queues
        self._states: States | None = None
        self._rises = {field: QueueRises(one) for field, one in COUNTED.items()}

    def update(self, states: States | None) -> None:
        """None: nobody can look."""
        self._states = states
        if states is None:
            return
        read = states.queues
        self._named &= read.keys() | set(states.unreadable)
        if room := self._most - len(self._named):
            rest = read.keys() - self._named
            self._named.update(sorted(rest, key=lambda name: (-_size(read[name]), name))[:room])
        for field, rises in self._rises.items():
            totals = {name: getattr(state, field) for name, state in read.items()}
            rises.count(totals, self._label, states.unreadable)

    def _label(self, name: str) -> str:
        return label_of(name) if name in self._named else OTHER

    def collect(self) -> Iterator[Family]:
        states = self._states
        if states is None:
            return
        sums = {OTHER: Sum()}
        for name, state in states.queues.items():
            sums.setdefault(self._label(name), Sum()).add(state)
        unread, there = len(states.unreadable), len(states.queues) + len(states.unreadable)
        for one, number in ((state_measures.QUEUES, there), (state_measures.UNREAD, unread)):
            yield GaugeMetricFamily(one.name, one.text, number)
        for field, one in SHOWN.items():
            family = GaugeMetricFamily(one.name, one.text, labels=one.label_names)
            for label, told in sums.items():
                family.add_metric([label], getattr(told, field))
            yield family
        for rises in self._rises.values():
            yield rises.family()


def _size(state: QueueState) -> int:
    return state.ready + state.in_flight + state.dead
