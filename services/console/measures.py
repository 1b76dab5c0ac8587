"""Metrics of the console's own, beside those that every process of ours has."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge, histogram

WHO = "the console"

METHOD = Label("method", "6")

REQUESTS = counter(
    "penstock_console_requests_total", "HTTP requests answered", METHOD, Label("status", "some 20")
)
SECONDS = histogram("penstock_console_request_seconds", "Time from a request until its answer begins", METHOD)
STREAMS = gauge("penstock_console_streams", "Live views open now")
JOBS = gauge("penstock_console_jobs", "Redrives, purges and emptied queues under way")
AUDIT_FAILURES = counter(
    "penstock_console_audit_failures_total", "Changes that could only be logged, not written into the store"
)
