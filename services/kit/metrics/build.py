"""Report the version of Penstock, for people and for Prometheus."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from services.kit.metrics.build_measures import INFO


def version() -> str:
    """Return the installed version; '' if the package is not installed."""
    try:
        return importlib.metadata.version("penstock")
    except importlib.metadata.PackageNotFoundError:
        return ""


class Build(Collector):
    """The metric `penstock_build_info`: it shows which pods an upgrade has reached."""

    def __init__(self) -> None:
        self._version = version()

    def collect(self) -> Iterator[Metric]:
        """Return the metric with the label `version`."""
        family = GaugeMetricFamily(INFO.name, INFO.text, labels=INFO.label_names)
        family.add_metric([self._version], 1.0)
        yield family
