"""Declare the metrics of the latest analytics report; they are absent without a report."""

from __future__ import annotations

from services.kit.measure import Label, gauge

WHO = "the operator, the console"

TIME = gauge(
    "penstock_report_time_seconds",
    "When the run of the latest report was scheduled",
    more="Unix time; see the analytics job's [report](analytics.md#the-report)",
)
PERIOD = gauge("penstock_report_period_seconds", "Length of the period that the report covers")
MESSAGES = gauge(
    "penstock_report_messages",
    "Messages of the period, by outcome",
    Label("what", "4"),
    more="`in`, `out` and `dead` by the queues' counters, `refused` by the edges' samples",
)
DEATHS = gauge(
    "penstock_report_deaths",
    "Dead letters of the period that were read, by reason",
    Label("reason", "20"),
    unit="messages",
    more="the most frequent reasons",
)
BUDGET = gauge(
    "penstock_report_error_budget_used_ratio",
    "Used fraction of the error budget, all queues",
    more="above 1: exhausted",
)
QUEUE_BUDGET = gauge(
    "penstock_report_queue_error_budget_used_ratio",
    "Used fraction of the error budget, for the queues with the highest use",
    Label("domain", "20"),
    Label("queue", "1"),
)
CHANGES = gauge(
    "penstock_report_sudden_changes", "Sudden changes in the period, compared with the previous week"
)
QUARANTINED = gauge(
    "penstock_report_quarantined",
    "Records that runs of the period could not use",
    Label("kind", "2"),
    more="`dead`, `samples`",
)
LATE = gauge(
    "penstock_report_late_records",
    "Dead letters and samples that arrived after the tables of their hour were closed",
    more="in runs of the period; 0 since 0.2, which counts them in their hours",
)
LOST_SAMPLES = gauge("penstock_report_lost_samples", "Samples trimmed before runs of the period read them")
LOST_STREAMS = gauge(
    "penstock_report_lost_streams",
    "Streams from which runs of the period missed an unknown number of records",
    more="streams that were deleted or rewound, such as after a restore",
)
