"""The report of the analytics job: its schema, its place in the store, and its figures for metrics.

Reports are computed in `services.analytics`.
"""

from services.store.report.report import (
    MOST_OCTETS,
    VERSION,
    Budget,
    Change,
    Changes,
    Count,
    Deaths,
    EdgeFigures,
    Failure,
    HourFigures,
    Missing,
    Period,
    Quantiles,
    QueueBudget,
    QueueFigures,
    QueueRedrives,
    Records,
    Redrives,
    Report,
    Totals,
)
from services.store.report.reports import keep_reading, read_report, write_report

__all__ = [
    "MOST_OCTETS",
    "VERSION",
    "Budget",
    "Change",
    "Changes",
    "Count",
    "Deaths",
    "EdgeFigures",
    "Failure",
    "HourFigures",
    "Missing",
    "Period",
    "Quantiles",
    "QueueBudget",
    "QueueFigures",
    "QueueRedrives",
    "Records",
    "Redrives",
    "Report",
    "Totals",
    "keep_reading",
    "read_report",
    "write_report",
]
