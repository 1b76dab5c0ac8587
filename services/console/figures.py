"""Metrics of the console's own, beside those that every process of ours has."""

from __future__ import annotations

from services.kit.metrics import Metrics


class Figures:
    def __init__(self, metrics: Metrics) -> None:
        self._edge = metrics.edge
        self._metrics = metrics
        self._requests = metrics.counter("console_requests", "HTTP requests answered", ("method", "status"))
        self._seconds = metrics.histogram(
            "console_request_seconds", "Time from request to answer", ("method",)
        )
        self.streams = metrics.gauge("console_streams", "Live views open now").labels(metrics.edge)
        self.jobs = metrics.gauge("console_jobs", "Redrives and purges under way").labels(metrics.edge)
        self.audit_failures = metrics.counter(
            "console_audit_failures", "Changes that could only be logged, not written into the store"
        ).labels(metrics.edge)

    def answered(self, method: str, status: int, seconds: float) -> None:
        method = method if method in METHODS else "other"
        self._requests.labels(self._edge, method, str(status)).inc()
        self._seconds.labels(self._edge, method).observe(seconds)

    def fault(self) -> None:
        self._metrics.local_errors.inc()


METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE"))
