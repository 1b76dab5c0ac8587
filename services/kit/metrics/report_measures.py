"""Define the metrics of the analytics job's last report; absent without one (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import Label, gauge

WHO = "the operator, the console"

TIME = gauge(
    "penstock_report_time_seconds",
    "Planned time of the run of the last report",
    more="seconds since 1970; of the analytics job's [report](analytics.md#the-report)",
)
PERIOD = gauge("penstock_report_period_seconds", "Length of the period of the report")
MESSAGES = gauge(
    "penstock_report_messages",
    "Messages of the period, by outcome",
    Label("what", "4"),
    more="`in`, `out`, `refused`, `dead`",
)
DEATHS = gauge(
    "penstock_report_deaths",
    "Dead letters of the period, by reason",
    Label("reason", "20"),
    unit="messages",
    more="the most frequent reasons",
)
BUDGET = gauge(
    "penstock_report_error_budget_used_ratio",
    "Used share of the error budget, all queues together",
    more="above 1: exceeded",
)
QUEUE_BUDGET = gauge(
    "penstock_report_queue_error_budget_used_ratio",
    "Used share of the error budget, of the queues that used most",
    Label("domain", "20"),
    Label("queue", "1"),
)
CHANGES = gauge("penstock_report_sudden_changes", "Sudden changes of the period against the week before")
QUARANTINED = gauge(
    "penstock_report_quarantined",
    "Records that runs of the period could not read",
    Label("kind", "2"),
    more="`dead`, `samples`",
)
LATE = gauge(
    "penstock_report_late_records",
    "Dead letters and samples that arrived after the tables of their hour were closed",
    more="only the archive has them; of runs of the period",
)
LOST_SAMPLES = gauge("penstock_report_lost_samples", "Samples trimmed before runs of the period read them")
LOST_STREAMS = gauge(
    "penstock_report_lost_streams",
    "Streams of which runs of the period missed an unknown number of records",
    more="they disappeared or went back, as after a restored backup",
)
