"""Export the analytics job's report as metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from services.kit.metrics import report_measures

SHOWN = {
    "time": report_measures.TIME,
    "period": report_measures.PERIOD,
    "messages": report_measures.MESSAGES,
    "deaths": report_measures.DEATHS,
    "budget": report_measures.BUDGET,
    "queue_budget": report_measures.QUEUE_BUDGET,
    "changes": report_measures.CHANGES,
    "quarantined": report_measures.QUARANTINED,
    "late": report_measures.LATE,
    "lost_samples": report_measures.LOST_SAMPLES,
    "lost_streams": report_measures.LOST_STREAMS,
}

ReportValues = Mapping[str, Mapping[tuple[str, ...], float]]  # by key of SHOWN, and by labels


class ReportMetrics(Collector):
    """Metrics of the last report."""

    def __init__(self) -> None:
        self._values: ReportValues | None = None

    def update(self, values: ReportValues | None) -> None:
        """Take the values of a report; None removes them."""
        self._values = values

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics, without values if there is no report."""
        values = self._values
        for name, one in SHOWN.items():
            family = GaugeMetricFamily(one.name, one.text, labels=one.label_names)
            for labels, value in values[name].items() if values is not None else ():
                family.add_metric(labels, value)
            yield family
