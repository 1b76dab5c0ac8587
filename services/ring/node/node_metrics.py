"""Metrics of a ring node (docs/operations.md)."""

from __future__ import annotations

from collections import Counter

from services.kit.measure import Measure
from services.kit.metrics import Metrics
from services.ring import measures

USER, LOOP = "user", "loop"
COUNTERS = (
    measures.BREAKS,
    measures.DIALS,
    measures.BEACONS_SENT,
    measures.BEACONS_RECEIVED,
    measures.BEACONS_REFUSED,
    measures.BEACONS_IGNORED,
    measures.BEACONS_UNSENT,
    measures.RECEIVED,
    measures.SENT,
    measures.RETURNED,
)


class NodeMetrics:
    """The gauges and counters of a node.

    Messages are counted in plain counters, which `publish` adds to the metrics: there may be thousands a second.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._edge = edge = metrics.edge
        self.leader = metrics.gauge(measures.LEADER).labels(edge)
        self.led = metrics.gauge(measures.LED).labels(edge)
        self.predecessor = metrics.gauge(measures.PREDECESSOR).labels(edge)
        self.successor = metrics.gauge(measures.SUCCESSOR).labels(edge)
        self.members = metrics.gauge(measures.MEMBERS).labels(edge)
        self._counters = {measure.name: metrics.counter(measure) for measure in COUNTERS}
        self.count(measures.BEACONS_UNSENT, number=0)
        self.received: Counter[str] = Counter()  # by type, since the last `publish`
        self.sent: Counter[str] = Counter()
        self.returned: Counter[str] = Counter()

    def count(self, measure: Measure, *labels: str, number: int = 1) -> None:
        """Add to a counter, which has these values of its labels after `edge`."""
        self._counters[measure.name].labels(self._edge, *labels).inc(number)

    def publish(self) -> None:
        """Add the messages counted since the last call to the metrics."""
        for counts, measure in (
            (self.received, measures.RECEIVED),
            (self.sent, measures.SENT),
            (self.returned, measures.RETURNED),
        ):
            for kind, number in counts.items():
                self.count(measure, kind, number=number)
            counts.clear()
