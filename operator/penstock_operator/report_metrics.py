"""The report of the analytics job as metrics: one number for each of a few things, and nothing where there is none.

Queues are those that the report names for their budgets; it names 20 at most, and so do we, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from services.store.report import Report

MOST = 20  # reasons, and queues
HOUR_S = 3600

Values = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True)
class ReportGauge:
    """One metric."""

    name: str
    text: str
    labels: tuple[str, ...]
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
    family = GaugeMetricFamily(told.name, told.text, labels=told.labels)
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
    dead, samples = report.records.dead, report.records.samples
    return [(("dead",), float(dead.quarantined)), (("samples",), float(samples.quarantined))]


METRICS = (
    ReportGauge(
        "penstock_operator_report_time_seconds",
        "When the run of the last report was planned",
        (),
        lambda report: _one(report.now_ms / 1000),
    ),
    ReportGauge(
        "penstock_operator_report_period_seconds",
        "How long the time is that it is about",
        (),
        lambda report: _one(report.period.hours * HOUR_S),
    ),
    ReportGauge(
        "penstock_operator_report_messages",
        "Messages of that time, by what became of them",
        ("what",),
        _messages,
    ),
    ReportGauge(
        "penstock_operator_report_deaths", "Dead letters of that time, by reason", ("reason",), _deaths
    ),
    ReportGauge(
        "penstock_operator_report_error_budget_used_ratio",
        "Part of the error budget that is used, of all queues",
        (),
        lambda report: _one(report.budget.used),
    ),
    ReportGauge(
        "penstock_operator_report_queue_error_budget_used_ratio",
        "Part of it that is used, of the queues that have used most",
        ("domain", "queue"),
        _budgets,
    ),
    ReportGauge(
        "penstock_operator_report_sudden_changes",
        "Sudden changes against the week before, of that time",
        (),
        lambda report: _one(report.changes.count),
    ),
    ReportGauge(
        "penstock_operator_report_quarantined", "Records that its run could not use", ("kind",), _quarantined
    ),
    ReportGauge(
        "penstock_operator_report_lost_samples",
        "Samples that were trimmed before its run read them",
        (),
        lambda report: _one(report.records.samples.lost),
    ),
)
