"""What the operator counts. Names begin with penstock_operator_; docs/kubernetes.md lists them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LOOK_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        name = "penstock_operator_"
        registry = self.registry
        self.looks = Counter(
            f"{name}looks", "Resources looked at, by what came of it", ["kind", "result"], registry=registry
        )
        self.look_s = Histogram(
            f"{name}look_seconds", "Time to look at one", ["kind"], buckets=LOOK_BUCKETS_S, registry=registry
        )
        self.statuses = Counter(f"{name}status_patches", "Statuses written", ["kind"], registry=registry)
        self.events = Counter(f"{name}events", "Events written, by reason", ["reason"], registry=registry)
        self.resources = Gauge(
            f"{name}resources", "Resources, by the reason of Ready", ["kind", "reason"], registry=registry
        )
        self.store_up = Gauge(f"{name}store_up", "Whether the store can be used: 1, or 0", registry=registry)
        self.restored = Counter(
            f"{name}store_restored", "Times an empty store was set up anew", registry=registry
        )
        self.sweeps = Counter(f"{name}sweeps", "Passes over all resources", ["result"], registry=registry)
        self.sweep_s = Gauge(f"{name}sweep_seconds", "Time that the last pass took", registry=registry)
        self.waiting = Gauge(f"{name}waiting", "Resources that wait to be looked at", registry=registry)
        self.peers = Gauge(
            f"{name}peers", "Peers in the store, by who declared them", ["by"], registry=registry
        )
        self.redriven = Counter(f"{name}redriven", "Dead letters brought back", registry=registry)
        self.removed = Counter(
            f"{name}removed", "Queues that went or stayed, by outcome", ["outcome"], registry=registry
        )

    def render(self) -> bytes:
        return generate_latest(self.registry)
