"""What is told of all workers of an edge together, by the process that answers for them."""

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
from services.kit.metrics.queue_totals import SharedFigures
from services.kit.workers.dead_worker_metrics import read_lock
from services.kit.workers.process_group import ProcessGroup
from services.kit.workers.worker_status import WorkerTable

DIGITS = 6  # of a sum of seconds, behind the point


class WorkerMetrics(Collector):
    """The metrics of all processes that share `folder`, whose rows are on `board`, and which a supervisor began."""

    def __init__(self, edge: str, folder: Path, board: WorkerTable, supervisor: int) -> None:
        self._edge = edge
        self._folder = folder
        self._board = board
        self._shared = MultiProcessCollector(None, path=str(folder))  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._registry.register(SharedFigures(folder, edge))
        self._registry.register(self)
        self._registry.register(ProcessGroup(supervisor))
        self._registry.register(Build())
        PlatformCollector(registry=self._registry)

    def render(self) -> bytes:
        """The text of /metrics."""
        with read_lock(self._folder):
            return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        for family in self._shared.collect():  # type: ignore[no-untyped-call]
            if family.name != measures.READY.name:  # a worker that is dead says nothing of it
                yield _rounded(family) if family.type == "histogram" else family
        ready, deaths = measures.READY, worker_measures.DEATHS
        told = GaugeMetricFamily(ready.name, ready.text, labels=["edge"])
        told.add_metric([self._edge], float(self._board.readiness.unready() is None))
        yield told
        counted = CounterMetricFamily(deaths.name, deaths.text, labels=["edge"])
        counted.add_metric([self._edge], self._board.deaths())
        yield counted


def _rounded(histogram: Metric) -> Metric:
    """Its sums do not depend on what was added to what first: else one falls by a hair when a worker dies.

    Prometheus would take that for a counter that began anew.
    """
    histogram.samples = [
        sample._replace(value=round(sample.value, DIGITS)) if sample.name.endswith("_sum") else sample
        for sample in histogram.samples
    ]
    return histogram
