"""What is counted of a node (docs/operations.md)."""

from __future__ import annotations

from collections import Counter

from services.kit.metrics import Metrics
from services.ring import measures
from services.ring.node.breaks import reason_of

USER, LOOP = "user", "loop"


class Figures:
    """Messages are counted plainly and told to the metrics by `publish`: there may be thousands a second."""

    def __init__(self, metrics: Metrics) -> None:
        self._edge = edge = metrics.edge
        self._metrics = metrics
        self.leader = metrics.gauge(measures.LEADER).labels(edge)
        self.led = metrics.gauge(measures.LED).labels(edge)
        self.predecessor = metrics.gauge(measures.PREDECESSOR).labels(edge)
        self.successor = metrics.gauge(measures.SUCCESSOR).labels(edge)
        self.members = metrics.gauge(measures.MEMBERS).labels(edge)
        self._breaks = metrics.counter(measures.BREAKS)
        self._dials = metrics.counter(measures.DIALS)
        self._beacons_sent = metrics.counter(measures.BEACONS_SENT)
        self._beacons_heard = metrics.counter(measures.BEACONS_RECEIVED)
        self._beacons_refused = metrics.counter(measures.BEACONS_REFUSED)
        self._beacons_ignored = metrics.counter(measures.BEACONS_IGNORED)
        self._beacons_unsent = metrics.counter(measures.BEACONS_UNSENT).labels(edge)
        self._received = metrics.counter(measures.RECEIVED)
        self._sent = metrics.counter(measures.SENT)
        self._returned = metrics.counter(measures.RETURNED)
        self.received: Counter[str] = Counter()  # by type, since the last `publish`
        self.sent: Counter[str] = Counter()
        self.returned: Counter[str] = Counter()

    def broken(self, side: str, why: str, number: int = 1) -> None:
        """side: inbound, outbound or both. why: as people are told."""
        self._breaks.labels(self._edge, side, reason_of(side, why)).inc(number)

    def dialled(self, result: str) -> None:
        """result: connected, failed or not_allowed."""
        self._dials.labels(self._edge, result).inc()

    def beacon_sent(self, kind: str) -> None:
        self._beacons_sent.labels(self._edge, kind).inc()

    def beacon_unsent(self) -> None:
        self._beacons_unsent.inc()

    def beacon_heard(self, kind: str) -> None:
        self._beacons_heard.labels(self._edge, kind).inc()

    def beacon_refused(self, reason: str) -> None:
        self._beacons_refused.labels(self._edge, reason).inc()

    def beacon_ignored(self, reason: str) -> None:
        self._beacons_ignored.labels(self._edge, reason).inc()

    def unusable(self, reason: str) -> None:
        """A LOOP that nobody can act upon (ring.md 2.3)."""
        self._metrics.count_refusal(reason)

    def publish(self) -> None:
        for counts, counter in (
            (self.received, self._received),
            (self.sent, self._sent),
            (self.returned, self._returned),
        ):
            for kind, number in counts.items():
                counter.labels(self._edge, kind).inc(number)
            counts.clear()
