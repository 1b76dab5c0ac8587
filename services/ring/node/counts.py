"""What became of USERs, counted (ring.md 5.5; docs/operations.md)."""

from __future__ import annotations

from collections import Counter

from protos.ring import Why
from services.kit.metrics import Metrics
from services.ring import measures

PASSED_ON = "passed_on"  # into the successor's queue, as it came
DELIVERED = "delivered"  # into the inbox
BURIED = "buried"  # into the inbox's dead letters, as the inbox took nothing
SERVED = "served"  # somebody's request
SETTLED = "settled"  # somebody's settlement
ASKED = "asked"  # a request of a client of ours
TIMED_OUT = "timed_out"  # of these, without a reply for 30 s
ANSWERED = "answered"  # a reply for us
LATE = "late"  # a reply that nobody waits for any more
CAME_BACK = "came_back"  # a request of ours: no node serves the queue
TAKEN_OFF = "taken_off"  # what we put on, gone round
UNSAFE = "unsafe"  # the store did not take it: it is not answered, so it comes again
BEGUN = "begun"  # out of the outbox
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
    """`publish` tells the metrics; in between it is plain numbers, as there may be thousands a second."""

    def __init__(self, metrics: Metrics) -> None:
        self.now: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        self._users = metrics.counter(measures.USERS)
        self._dropped = metrics.counter(measures.DROPPED)
        self._edge = metrics.edge
        for what in WHAT:
            self._users.labels(self._edge, what)
        for why in Why:
            self._dropped.labels(self._edge, why.value)

    def publish(self) -> None:
        for what, number in self.now.items():
            family = self._users if what in WHAT else self._dropped
            family.labels(self._edge, what).inc(number - self._told[what])
        self._told = Counter(self.now)
