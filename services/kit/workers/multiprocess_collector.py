"""Combine the metrics of all workers of an edge, in the process that serves /metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, Metric, PlatformCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from services.kit.metrics import measures, worker_measures
from services.kit.metrics.build import Build
from services.kit.metrics.queue_totals import SharedQueueTotals
from services.kit.workers.dead_worker_metrics import read_lock
from services.kit.workers.process_group import ProcessGroup
from services.kit.workers.worker_status import WorkerTable

DIGITS = 6  # decimal places of a sum of seconds


class WorkerMetrics(Collector):
    """The metrics of all workers that share `folder`, and of their supervisor."""

    def __init__(self, edge: str, folder: Path, table: WorkerTable, supervisor: int) -> None:
        self._edge = edge
        self._folder = folder
        self._table = table
        self._shared = MultiProcessCollector(None, path=str(folder))  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._registry.register(SharedQueueTotals(folder, edge))
        self._registry.register(self)
        self._registry.register(ProcessGroup(supervisor))
        self._registry.register(Build())
        PlatformCollector(registry=self._registry)

    def render(self) -> bytes:
        """Return the text of /metrics."""
        with read_lock(self._folder):
            return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the combined metrics."""
        for family in self._shared.collect():  # type: ignore[no-untyped-call]
            if family.name != measures.READY.name:  # a dead worker has no such metric
                yield _rounded(family) if family.type == "histogram" else family
        ready, deaths = measures.READY, worker_measures.DEATHS
        gauge = GaugeMetricFamily(ready.name, ready.text, labels=["edge"])
        gauge.add_metric([self._edge], float(self._table.readiness.unready() is None))
        yield gauge
        counted = CounterMetricFamily(deaths.name, deaths.text, labels=["edge"])
        counted.add_metric([self._edge], self._table.deaths())
        yield counted


def _rounded(histogram: Metric) -> Metric:
    """Round sums, so that they do not depend on the order of addition.

    Otherwise a sum could fall slightly when a worker exits, which Prometheus takes for a restart.
    """
    histogram.samples = [
        sample._replace(value=round(sample.value, DIGITS)) if sample.name.endswith("_sum") else sample
        for sample in histogram.samples
    ]
    return histogram
