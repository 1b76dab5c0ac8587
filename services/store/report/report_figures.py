"""Select a bounded number of figures from a report, for metrics.

Queues are those with the most used error budgets, 20 at most, for any size of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from services.store.report.report import Report

MOST = 20  # reasons and queues
HOUR_S = 3600

Values = Mapping[tuple[str, ...], float]  # by label values
Figures = Mapping[str, Values]  # by figure


def figures(report: Report) -> Figures:
    """Return the figures; times in seconds. A figure that the report lacks has no values."""
    totals, missing = report.totals, report.missing
    messages = {"in": totals.in_, "out": totals.out, "refused": totals.refused, "dead": totals.died}
    quarantined = {"dead": missing.quarantined_dead, "samples": missing.quarantined_samples}
    budgets = ((each.domain, each.queue, each.used) for each in report.budget.queues[:MOST])
    return {
        "time": _one(report.now_ms / 1000),
        "period": _one(report.period.hours * HOUR_S),
        "messages": _greatest(((what,), number) for what, number in messages.items()),
        "deaths": _greatest(((each.name,), each.count) for each in report.deaths.by_reason[:MOST]),
        "budget": _one(report.budget.used),
        "queue_budget": _greatest(((domain, queue), used) for domain, queue, used in budgets),
        "changes": _one(report.changes.count),
        "quarantined": _greatest(((kind,), number) for kind, number in quarantined.items()),
        "late": _one(missing.late),
        "lost_samples": _one(missing.lost_samples),
        "lost_streams": _one(missing.lost_streams),
    }


def _one(value: float | None) -> Values:
    return {} if value is None else {(): float(value)}


def _greatest(values: Iterable[tuple[tuple[str, ...], float | None]]) -> Values:
    """Return the greatest value per label values: truncated names may coincide, and metrics must be unique."""
    found: dict[tuple[str, ...], float] = {}
    for key, value in values:
        if value is not None:
            found[key] = max(float(value), found.get(key, float(value)))
    return found
