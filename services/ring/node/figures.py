"""What is counted of a node (docs/operations.md)."""

from __future__ import annotations

from collections import Counter

from services.kit.metrics import Metrics
from services.ring.node.breaks import reason_of

USER, LOOP = "user", "loop"


class Figures:
    """Messages are counted plainly and told to the metrics by `publish`: there may be thousands a second."""

    def __init__(self, metrics: Metrics) -> None:
        self._edge = edge = metrics.edge
        self._metrics = metrics
        self.leader = metrics.gauge("ring_leader", "1 while the node leads its ring").labels(edge)
        self.led = metrics.gauge("ring_led", "1 while it knows of somebody who leads its ring").labels(edge)
        self.predecessor = metrics.gauge("ring_predecessor", "1 while it has a predecessor").labels(edge)
        self.successor = metrics.gauge("ring_successor", "1 while it has a successor").labels(edge)
        self.members = metrics.gauge("ring_members", "Other nodes that it has heard of lately").labels(edge)
        self._breaks = metrics.counter("ring_breaks", "Links lost", ("side", "reason"))
        self._dials = metrics.counter("ring_dials", "Attempts to reach a successor", ("result",))
        self._beacons_sent = metrics.counter("ring_beacons_sent", "Beacons sent", ("kind",))
        self._beacons_heard = metrics.counter("ring_beacons_received", "Beacons that count", ("kind",))
        self._beacons_refused = metrics.counter(
            "ring_beacons_refused", "Datagrams that are no beacon, or not allowed", ("reason",)
        )
        self._beacons_ignored = metrics.counter(
            "ring_beacons_ignored", "Beacons of other groups, and the node's own", ("reason",)
        )
        self._beacons_unsent = metrics.counter(
            "ring_beacons_unsent", "Beacons that could not be sent"
        ).labels(edge)
        self._received = metrics.counter("ring_messages_received", "Of the predecessor", ("type",))
        self._sent = metrics.counter("ring_messages_sent", "To the successor", ("type",))
        self._returned = metrics.counter(
            "ring_messages_returned", "Unanswered when their link broke: they go again", ("type",)
        )
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
