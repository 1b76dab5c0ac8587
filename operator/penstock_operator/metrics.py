"""What the operator counts. Names begin with penstock_operator_; docs/kubernetes.md lists them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from penstock_operator.report_metrics import ReportMetrics

LOOK_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        self.looks = Counter(
            "penstock_operator_looks",
            "Resources looked at, by what came of it",
            ["kind", "result"],
            registry=registry,
        )
        self.look_s = Histogram(
            "penstock_operator_look_seconds",
            "Time to look at one",
            ["kind"],
            buckets=LOOK_BUCKETS_S,
            registry=registry,
        )
        self.depth = Gauge(
            "penstock_operator_queue_depth",
            "Messages that wait or are out, of a Queue, at the last look",
            ["namespace", "name"],
            registry=registry,
        )
        self.statuses = Counter(
            "penstock_operator_status_patches", "Statuses written", ["kind"], registry=registry
        )
        self.events = Counter(
            "penstock_operator_events", "Events written, by reason", ["reason"], registry=registry
        )
        self.resources = Gauge(
            "penstock_operator_resources",
            "Resources, by the reason of Ready",
            ["kind", "reason"],
            registry=registry,
        )
        self.store_up = Gauge(
            "penstock_operator_store_up", "Whether the store can be used: 1, or 0", registry=registry
        )
        self.restored = Counter(
            "penstock_operator_store_restored", "Times an empty store was set up anew", registry=registry
        )
        self.sweeps = Counter(
            "penstock_operator_sweeps", "Passes over all resources", ["result"], registry=registry
        )
        self.sweep_s = Gauge(
            "penstock_operator_sweep_seconds", "Time that the last pass took", registry=registry
        )
        self.waiting = Gauge(
            "penstock_operator_waiting", "Resources that wait to be looked at", registry=registry
        )
        self.peers = Gauge(
            "penstock_operator_peers", "Peers in the store, by who declared them", ["by"], registry=registry
        )
        self.ring_stranded = Gauge(
            "penstock_operator_ring_stranded_messages",
            "Messages in queues of a ring's nodes that no node owns: nobody sends them",
            ["queue"],
            registry=registry,
        )
        self.redriven = Counter("penstock_operator_redriven", "Dead letters brought back", registry=registry)
        self.removed = Counter(
            "penstock_operator_removed",
            "Queues that went or stayed, by outcome",
            ["outcome"],
            registry=registry,
        )
        self.report = ReportMetrics()
        registry.register(self.report)

    def render(self) -> bytes:
        return generate_latest(self.registry)
