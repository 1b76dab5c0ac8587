"""Count the outcomes of USER messages (ring.md 5.5; docs/operations.md)."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from protos.ring import DropReason
from services.kit.metrics import Metrics
from services.ring import measures


class UserOutcome(StrEnum):
    """The outcome of a USER; the values are metric labels."""

    PASSED_ON = "passed_on"  # queued unchanged for the successor
    DELIVERED = "delivered"  # put into the inbox
    BURIED = "buried"  # put into the inbox's dead letters, as the inbox refused it
    SERVED = "served"  # another node's request, carried out
    SETTLED = "settled"  # another node's settlement, carried out
    ASKED = "asked"  # a request of a local client
    TIMED_OUT = "timed_out"  # such a request without a reply for 30 s
    ANSWERED = "answered"  # a reply to a local client's request
    LATE = "late"  # a reply after its request has ended
    CAME_BACK = "came_back"  # a local client's request: no node serves the queue
    TAKEN_OFF = "taken_off"  # a message of this node that has gone around
    UNSAFE = "unsafe"  # not stored, so not answered: the predecessor sends it again
    BEGUN = "begun"  # taken from the outbox


class Counts:
    """Counters by outcome: plain numbers, which `publish` adds to the metrics, as there may be thousands a second."""

    def __init__(self, metrics: Metrics) -> None:
        self.now: Counter[str] = Counter()
        self._published: Counter[str] = Counter()
        edge = metrics.edge
        users, dropped = metrics.counter(measures.USERS), metrics.counter(measures.DROPPED)
        self._counters = {what.value: users.labels(edge, what.value) for what in UserOutcome}
        self._counters |= {why.value: dropped.labels(edge, why.value) for why in DropReason}

    def publish(self) -> None:
        """Add what was counted since the last call to the metrics."""
        for what, number in self.now.items():
            self._counters[what].inc(number - self._published[what])
        self._published = Counter(self.now)
