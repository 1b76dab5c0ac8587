"""The report of the analytics job as metrics: one number for each of a few things, and nothing where there is none.

Queues are those that the report names for their budgets; it names 20 at most, and so do we, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from penstock_operator import measures
from services.kit.measure import Measure
from services.store.report import Report

MOST = 20  # reasons, and queues
HOUR_S = 3600

Values = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True)
class ReportGauge:
    """One metric."""

    measure: Measure
    values: Callable[[Report], Values]


class ReportMetrics(Collector):
    """`report` is what is told, None: nothing."""

    def __init__(self) -> None:
        self.report: Report | None = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for one in METRICS:
            yield _family(one, one.values(self.report) if self.report is not None else ())


def _family(told: ReportGauge, values: Values) -> GaugeMetricFamily:
    """Names that were cut may be the same: the greatest stands for all, as a page with two of a name is none."""
    family = GaugeMetricFamily(told.measure.name, told.measure.text, labels=told.measure.label_names)
    greatest: dict[tuple[str, ...], float] = {}
    for key, value in values:
        greatest[key] = max(value, greatest.get(key, value))
    for key, value in greatest.items():
        family.add_metric(key, value)
    return family


def _one(value: float | None) -> Values:
    return () if value is None else (((), float(value)),)


def _messages(report: Report) -> Values:
    totals = report.totals
    found = {"in": totals.in_, "out": totals.out, "refused": totals.refused, "dead": totals.dead}
    return [((what,), float(value)) for what, value in found.items()]


def _deaths(report: Report) -> Values:
    return [((each.name,), float(each.count)) for each in report.deaths.by_reason[:MOST]]


def _budgets(report: Report) -> Values:
    queues = report.budget.queues[:MOST]
    return [((each.domain, each.queue), each.used) for each in queues if each.used is not None]


def _quarantined(report: Report) -> Values:
    found = {"dead": report.missing.quarantined_dead, "samples": report.missing.quarantined_samples}
    return [((kind,), float(number)) for kind, number in found.items()]


METRICS = (
    ReportGauge(measures.REPORT_TIME, lambda report: _one(report.now_ms / 1000)),
    ReportGauge(measures.REPORT_PERIOD, lambda report: _one(report.period.hours * HOUR_S)),
    ReportGauge(measures.REPORT_MESSAGES, _messages),
    ReportGauge(measures.REPORT_DEATHS, _deaths),
    ReportGauge(measures.REPORT_BUDGET, lambda report: _one(report.budget.used)),
    ReportGauge(measures.REPORT_QUEUE_BUDGET, _budgets),
    ReportGauge(measures.REPORT_CHANGES, lambda report: _one(report.changes.count)),
    ReportGauge(measures.REPORT_QUARANTINED, _quarantined),
    ReportGauge(measures.REPORT_LOST, lambda report: _one(report.missing.lost_samples)),
    ReportGauge(measures.REPORT_LOST_STREAMS, lambda report: _one(report.missing.lost_streams)),
)
