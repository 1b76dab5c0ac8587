"""What the analytics job found last, as the operator or the console tells it."""

from __future__ import annotations

from tools.dashboards.board import Board, Panel, Variable

REPORT = "penstock_report_"
OF_REPORT = (
    Variable("namespace", "Namespace", "label_values(penstock_report_time_seconds, namespace)"),
    Variable("job", "Job", 'label_values(penstock_report_time_seconds{namespace=~"$namespace"}, job)'),
    Variable("pod", "Pod", 'label_values(penstock_report_time_seconds{namespace=~"$namespace"}, pod)'),
)


def told(metric: str, *labels: str) -> str:
    return f"max by ({', '.join(('namespace', *labels))}) ({REPORT}{metric}{{$EDGES}})"


ANALYTICS = Board(
    "analytics",
    "Analytics",
    "The analytics job's last report, in numbers. Nothing is shown where there is none.",
    OF_REPORT,
    (
        Panel.of(
            "Age of the report",
            "Since its run was planned: the job runs every hour, unless `analytics.schedule` says otherwise.",
            "s",
            (f"time() - {told('time_seconds')}", "report of {{namespace}}"),
            kind="stat",
            width=6,
        ),
        Panel.of(
            "Period",
            "How long the time is that it is about.",
            "s",
            (told("period_seconds"), "report of {{namespace}}"),
            kind="stat",
            width=6,
        ),
        Panel.of(
            "Error budget used",
            "Of all queues; above 100 % it is spent.",
            "percentunit",
            (told("error_budget_used_ratio"), "report of {{namespace}}"),
            kind="stat",
            width=6,
        ),
        Panel.of(
            "Sudden changes",
            "Against the week before.",
            "short",
            (told("sudden_changes"), "report of {{namespace}}"),
            kind="stat",
            width=6,
        ),
        Panel.of(
            "Messages",
            "Of the period, by what became of them.",
            "short",
            (told("messages", "what"), "{{namespace}} {{what}}"),
            width=12,
        ),
        Panel.of(
            "Dead letters",
            "Of the period, by reason.",
            "short",
            (told("deaths", "reason"), "{{namespace}} {{reason}}"),
            width=12,
        ),
        Panel.of(
            "Error budget used, by queue",
            "Of the queues that have used most; above 100 % it is spent.",
            "percentunit",
            (told("queue_error_budget_used_ratio", "domain", "queue"), "{{namespace}} {{domain}}/{{queue}}"),
            width=12,
        ),
        Panel.of(
            "Left out",
            "Records that the run could not use, and samples that were trimmed before: then it runs too rarely.",
            "short",
            (told("quarantined", "kind"), "{{namespace}} {{kind}} not usable"),
            (told("lost_samples"), "{{namespace}} samples trimmed"),
            (told("lost_streams"), "{{namespace}} streams vanished or gone back"),
            width=12,
        ),
    ),
)
