"""Declare the console's own metrics."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge, histogram

WHO = "the console"

METHOD = Label("method", "6")

REQUESTS = counter(
    "penstock_console_requests_total", "HTTP requests answered", METHOD, Label("status", "some 20")
)
SECONDS = histogram(
    "penstock_console_request_seconds", "Time from a request to the start of its response", METHOD
)
STREAMS = gauge("penstock_console_streams", "Open live views")
JOBS = gauge("penstock_console_jobs", "Running redrives and purges")
AUDIT_FAILURES = counter(
    "penstock_console_audit_failures_total",
    "Changes that could not be written to the audit log in the store; only logged",
)
