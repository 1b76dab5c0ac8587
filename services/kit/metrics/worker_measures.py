"""Define the metrics of an edge's workers (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import counter

WHO = "every edge that has several workers"

DEATHS = counter(
    "penstock_worker_deaths_total",
    "Workers that exited unexpectedly and were restarted",
    more="should stay 0",
)
