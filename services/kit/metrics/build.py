"""Which Penstock this process is, for people and for Prometheus."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from services.kit.metrics.build_measures import INFO


def version() -> str:
    """As it was installed; '' for what was not."""
    try:
        return importlib.metadata.version("penstock")
    except importlib.metadata.PackageNotFoundError:
        return ""


class Build(Collector):
    """So that whoever looks at metrics sees which pods an upgrade has reached."""

    def __init__(self) -> None:
        self._version = version()

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(INFO.name, INFO.text, labels=INFO.label_names)
        family.add_metric([self._version], 1.0)
        yield family
