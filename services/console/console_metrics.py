"""Count the console's own metrics."""

from __future__ import annotations

from services.console import measures
from services.kit.metrics import Metrics

METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE"))


class ConsoleMetrics:
    """The console's own metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._edge = metrics.edge
        self._metrics = metrics
        self._requests = metrics.counter(measures.REQUESTS)
        self._seconds = metrics.histogram(measures.SECONDS)
        self.streams = metrics.gauge(measures.STREAMS).labels(metrics.edge)
        self.jobs = metrics.gauge(measures.JOBS).labels(metrics.edge)
        self.audit_failures = metrics.counter(measures.AUDIT_FAILURES).labels(metrics.edge)

    def response(self, method: str, status: int, seconds: float) -> None:
        """Count a response."""
        method = method if method in METHODS else "other"
        self._requests.labels(self._edge, method, str(status)).inc()
        self._seconds.labels(self._edge, method).observe(seconds)

    def internal_error(self) -> None:
        """Count an internal error."""
        self._metrics.local_errors.inc()
