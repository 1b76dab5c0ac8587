"""Count the outcomes of USER messages (ring.md 5.5; docs/operations.md)."""

from __future__ import annotations

from collections import Counter

from protos.ring import DropReason
from services.kit.metrics import Metrics
from services.ring import measures

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
WHAT = (
    PASSED_ON,
    DELIVERED,
    BURIED,
    SERVED,
    SETTLED,
    ASKED,
    TIMED_OUT,
    ANSWERED,
    LATE,
    CAME_BACK,
    TAKEN_OFF,
    UNSAFE,
    BEGUN,
)


class Counts:
    """Counters by outcome: plain numbers, which `publish` adds to the metrics, as there may be thousands a second."""

    def __init__(self, metrics: Metrics) -> None:
        self.now: Counter[str] = Counter()
        self._published: Counter[str] = Counter()
        self._users = metrics.counter(measures.USERS)
        self._dropped = metrics.counter(measures.DROPPED)
        self._edge = metrics.edge
        for what in WHAT:
            self._users.labels(self._edge, what)
        for why in DropReason:
            self._dropped.labels(self._edge, why.value)

    def publish(self) -> None:
        """Add what was counted since the last call to the metrics."""
        for what, number in self.now.items():
            family = self._users if what in WHAT else self._dropped
            family.labels(self._edge, what).inc(number - self._published[what])
        self._published = Counter(self.now)
