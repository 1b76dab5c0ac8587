"""What the analytics job found last, as the operator or the console tells it."""

from __future__ import annotations

from tools.dashboards.board import WHERE, Board, Panel

REPORT = "penstock_report_"


def told(metric: str, *labels: str) -> str:
    return f"max by ({', '.join(('$WHOSE', *labels))}) ({REPORT}{metric}{{$CONTROL}})"


ANALYTICS = Board(
    "analytics",
    "Analytics",
    "The analytics job's last report, in numbers. Nothing is shown where there is none.",
    WHERE,
    (
        Panel.of(
            "Age of the report",
            "Since its run was planned: the job runs every hour, unless `analytics.schedule` says otherwise.",
            "s",
            (f"time() - {told('time_seconds')}", "report"),
            kind="stat",
            width=6,
        ),
        Panel.of(
            "Period",
            "How long the time is that it is about.",
            "s",
            (told("period_seconds"), "report"),
            kind="stat",
            width=6,
        ),
        Panel.of(
            "Error budget used",
            "Of all queues; above 100 % it is spent.",
            "percentunit",
            (told("error_budget_used_ratio"), "report"),
            kind="stat",
            width=6,
        ),
        Panel.of(
            "Sudden changes",
            "Against the week before.",
            "short",
            (told("sudden_changes"), "report"),
            kind="stat",
            width=6,
        ),
        Panel.of(
            "Messages",
            "Of the period, by what became of them.",
            "short",
            (told("messages", "what"), "{{what}}"),
            width=12,
        ),
        Panel.of(
            "Dead letters",
            "Of the period, by reason.",
            "short",
            (told("deaths", "reason"), "{{reason}}"),
            width=12,
        ),
        Panel.of(
            "Error budget used, by queue",
            "Of the queues that have used most; above 100 % it is spent.",
            "percentunit",
            (told("queue_error_budget_used_ratio", "domain", "queue"), "{{domain}}/{{queue}}"),
            width=12,
        ),
        Panel.of(
            "Left out",
            "Records that runs could not use, or that the archive alone has (`--late-hours`), and samples that were "
            "trimmed before: then the job runs too rarely.",
            "short",
            (told("quarantined", "kind"), "{{kind}} not usable"),
            (told("late_records"), "came too late for the tables"),
            (told("lost_samples"), "samples trimmed"),
            (told("lost_streams"), "streams vanished or gone back"),
            width=12,
        ),
    ),
)
