"""Export the state of a store's queues as metrics, in one process for all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from services.kit.metrics import state_measures
from services.kit.metrics.queue_counters import QueueCounter
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
OF_ONE = ("oldest_age_s", "used")  # combined as a maximum, the others as a sum
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
    """The state of one queue."""

    @property
    def ready(self) -> int:
        """Return the messages ready for delivery."""

    @property
    def in_flight(self) -> int:
        """Return the messages delivered and not settled."""

    @property
    def dead(self) -> int:
        """Return the dead letters."""

    @property
    def died(self) -> int:
        """Return the messages that died since the queue was created, as all counts below."""

    @property
    def dead_overflowed(self) -> int:
        """Return the dead letters dropped because there were too many."""

    @property
    def redriven(self) -> int:
        """Return the dead letters redriven."""

    @property
    def purged(self) -> int:
        """Return the dead letters purged."""

    @property
    def emptied(self) -> int:
        """Return the ready messages purged."""

    @property
    def expired(self) -> int:
        """Return the messages that expired before delivery."""

    @property
    def duplicates(self) -> int:
        """Return the repeated batches, commits and requests."""

    @property
    def fenced(self) -> int:
        """Return the messages settled after their lease had ended."""

    @property
    def octets(self) -> int:
        """Return the octets of messages."""

    @property
    def oldest_age_s(self) -> float:
        """Return the age of the oldest unsettled message, 0 without one."""

    @property
    def used(self) -> float:
        """Return the used share of its limits."""


class States(Protocol):
    """The states of all queues, by name."""

    @property
    def queues(self) -> Mapping[str, QueueState]:
        """Return the states of readable queues."""

    @property
    def unreadable(self) -> Collection[str]:
        """Return the existing queues whose state is unavailable."""


@dataclass(slots=True)
class Sum:
    """The combined state of the queues with one label."""

    ready: int = 0
    in_flight: int = 0
    dead: int = 0
    octets: int = 0
    oldest_age_s: float = 0.0
    used: float = 0.0

    def add(self, state: QueueState) -> None:
        """Add a queue's state."""
        for one in fields(self):
            value, more = getattr(self, one.name), getattr(state, one.name)
            setattr(self, one.name, max(value, more) if one.name in OF_ONE else value + more)


class QueueStates(Collector):
    """Metrics of queues, as of the last `update`."""

    def __init__(self, most: int) -> None:
        """Use labels for `most` queues, largest first; a queue keeps its label until it is deleted."""
        self._most = most
        self._named: set[str] = set()  # queues
        self._states: States | None = None
        self._counters = {field: QueueCounter(one) for field, one in COUNTED.items()}

    def update(self, states: States | None) -> None:
        """Take the states; None: the store cannot be read."""
        self._states = states
        if states is None:
            return
        read = states.queues
        self._named &= read.keys() | set(states.unreadable)
        if room := self._most - len(self._named):
            rest = read.keys() - self._named
            self._named.update(sorted(rest, key=lambda name: (-_size(read[name]), name))[:room])
        for field, counter in self._counters.items():
            totals = {name: getattr(state, field) for name, state in read.items()}
            counter.count(totals, self._label, states.unreadable)

    def _label(self, name: str) -> str:
        return label_of(name) if name in self._named else OTHER

    def collect(self) -> Iterator[Family]:
        """Yield the metrics; none while the store cannot be read."""
        states = self._states
        if states is None:
            return
        sums = {OTHER: Sum()}
        for name, state in states.queues.items():
            sums.setdefault(self._label(name), Sum()).add(state)
        unreadable, total = len(states.unreadable), len(states.queues) + len(states.unreadable)
        for one, number in ((state_measures.QUEUES, total), (state_measures.UNREAD, unreadable)):
            yield GaugeMetricFamily(one.name, one.text, number)
        for field, one in SHOWN.items():
            family = GaugeMetricFamily(one.name, one.text, labels=one.label_names)
            for label, each in sums.items():
                family.add_metric([label], getattr(each, field))
            yield family
        for counter in self._counters.values():
            yield counter.family()


def _size(state: QueueState) -> int:
    return state.ready + state.in_flight + state.dead
