"""The registry of the operator's metrics."""

from __future__ import annotations

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from penstock_operator.metrics import measures
from penstock_operator.metrics.depths import Depths
from services.kit.measure import Measure
from services.kit.metrics import Build, LogLosses, QueueStates, ReportMetrics, StoreMemory

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # as edges do: services/kit/metrics/metrics.py


class Metrics:
    """The operator's metrics."""

    def __init__(self, named_queues: int = 0) -> None:
        """Create the registry. named_queues: how many queues and Queues have series of their own."""
        self.registry = CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.PlatformCollector(registry=self.registry)
        prometheus_client.GCCollector(registry=self.registry)
        self.registry.register(Build())
        self.reconciled = self._counter(measures.RECONCILED)
        self.reconcile_s = self._histogram(measures.RECONCILE_SECONDS)
        self.statuses = self._counter(measures.STATUS_PATCHES)
        self.events = self._counter(measures.EVENTS)
        self.resources = self._gauge(measures.RESOURCES)
        self.store_up = self._gauge(measures.STORE_UP)
        self.restored = self._counter(measures.RESTORED)
        self.replaced = self._gauge(measures.REPLACED)
        self.sweeps = self._counter(measures.SWEEPS)
        self.sweep_s = self._gauge(measures.SWEEP_SECONDS)
        self.waiting = self._gauge(measures.WAITING)
        self.peers = self._gauge(measures.PEERS)
        self.ring_stranded = self._gauge(measures.RING_STRANDED)
        self.redriven = self._counter(measures.REDRIVEN)
        self.removed = self._counter(measures.REMOVED)
        self.report = ReportMetrics()
        self.registry.register(self.report)
        self.depth = Depths(named_queues)
        self.registry.register(self.depth)
        self.queue_states = QueueStates(named_queues)
        self.registry.register(self.queue_states)
        self.log_losses = LogLosses()
        self.registry.register(self.log_losses)
        self.store_memory = StoreMemory()
        self.registry.register(self.store_memory)

    def _counter(self, one: Measure) -> Counter:
        return Counter(one.name, one.text, one.label_names, registry=self.registry)

    def _gauge(self, one: Measure) -> Gauge:
        return Gauge(one.name, one.text, one.label_names, registry=self.registry)

    def _histogram(self, one: Measure) -> Histogram:
        return Histogram(one.name, one.text, one.label_names, buckets=one.buckets, registry=self.registry)

    def render(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        return generate_latest(self.registry)
