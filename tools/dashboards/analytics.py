"""The dashboard of the analytics job's latest report."""

from __future__ import annotations

from tools.dashboards.board import WHERE, Board, Panel

REPORT = "penstock_report_"


def reported(metric: str, *labels: str) -> str:
    """Return the query for a metric of the report."""
    return f"max by ({', '.join(('$WHOSE', *labels))}) ({REPORT}{metric}{{$CONTROL}})"


ANALYTICS = Board(
    "analytics",
    "Analytics",
    "The latest report of the analytics job in numbers. Empty without a report.",
    WHERE,
    (
        Panel.of(
            "Age of the report",
            "Since its run was scheduled. The job runs hourly by default (`analytics.schedule`).",
            "s",
            (f"time() - {reported('time_seconds')}", "report"),
            kind="stat",
            width=6,
        ),
        Panel.of(
            "Period",
            "Length of the period that the report covers.",
            "s",
            (reported("period_seconds"), "report"),
            kind="stat",
            width=6,
        ),
        Panel.of(
            "Error budget used",
            "All queues together; above 100 % the budget is exhausted.",
            "percentunit",
            (reported("error_budget_used_ratio"), "report"),
            kind="stat",
            width=6,
        ),
        Panel.of(
            "Sudden changes",
            "Compared with the previous week.",
            "short",
            (reported("sudden_changes"), "report"),
            kind="stat",
            width=6,
        ),
        Panel.of(
            "Messages",
            "Messages of the period by outcome.",
            "short",
            (reported("messages", "what"), "{{what}}"),
            width=12,
        ),
        Panel.of(
            "Dead letters",
            "Dead letters of the period by reason.",
            "short",
            (reported("deaths", "reason"), "{{reason}}"),
            width=12,
        ),
        Panel.of(
            "Error budget used, by queue",
            "The queues with the highest use; above 100 % the budget is exhausted.",
            "percentunit",
            (reported("queue_error_budget_used_ratio", "domain", "queue"), "{{domain}}/{{queue}}"),
            width=12,
        ),
        Panel.of(
            "Missing records",
            "Records that runs could not use, or that arrived too late for the tables (before 0.2), and samples "
            "trimmed before they were read: the job then runs too rarely.",
            "short",
            (reported("quarantined", "kind"), "{{kind}} quarantined"),
            (reported("late_records"), "too late for the tables"),
            (reported("lost_samples"), "samples trimmed"),
            (reported("lost_streams"), "streams deleted or rewound"),
            width=12,
        ),
    ),
)
