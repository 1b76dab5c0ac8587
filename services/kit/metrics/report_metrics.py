"""The report of the analytics job as metrics, of whoever reads it in the store: all that do tell the same."""

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

Figures = Mapping[str, Mapping[tuple[str, ...], float]]  # by what is shown, and by labels


class ReportMetrics(Collector):
    """`tell` what the report says."""

    def __init__(self) -> None:
        self._told: Figures | None = None

    def update(self, figures: Figures | None) -> None:
        """None: there is no report."""
        self._told = figures

    def collect(self) -> Iterator[GaugeMetricFamily]:
        told = self._told
        for name, one in SHOWN.items():
            family = GaugeMetricFamily(one.name, one.text, labels=one.label_names)
            for labels, value in told[name].items() if told is not None else ():
                family.add_metric(labels, value)
            yield family
