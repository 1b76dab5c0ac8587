"""What the analytics job's last report says, in numbers; nothing where there is none (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import Label, gauge

WHO = "the operator, the console"

TIME = gauge(
    "penstock_report_time_seconds",
    "When the run of the last report was planned",
    more="since 1970; of the analytics job's [report](analytics.md#the-report)",
)
PERIOD = gauge("penstock_report_period_seconds", "How long the time is that the report is about")
MESSAGES = gauge(
    "penstock_report_messages",
    "Messages of that time, by what became of them",
    Label("what", "4"),
    more="`in`, `out`, `refused`, `dead`",
)
DEATHS = gauge(
    "penstock_report_deaths",
    "Dead letters of that time, by reason",
    Label("reason", "20"),
    unit="messages",
    more="the most frequent reasons",
)
BUDGET = gauge(
    "penstock_report_error_budget_used_ratio",
    "Part of the error budget that is used, of all queues",
    more="above 1: it is spent",
)
QUEUE_BUDGET = gauge(
    "penstock_report_queue_error_budget_used_ratio",
    "Part of it that is used, of the queues that have used most",
    Label("domain", "20"),
    Label("queue", "1"),
)
CHANGES = gauge("penstock_report_sudden_changes", "Sudden changes against the week before, of that time")
QUARANTINED = gauge(
    "penstock_report_quarantined",
    "Records that runs of that time could not use",
    Label("kind", "2"),
    more="`dead`, `samples`",
)
LATE = gauge(
    "penstock_report_late_records",
    "Dead letters and samples that came when the tables of their hour were closed",
    more="the archive alone has them; of runs of that time",
)
LOST_SAMPLES = gauge(
    "penstock_report_lost_samples", "Samples that were trimmed before runs of that time read them"
)
LOST_STREAMS = gauge(
    "penstock_report_lost_streams",
    "Streams of which runs of that time missed something, nobody knows how much",
    more="they vanished or went back, as after a restored backup",
)
