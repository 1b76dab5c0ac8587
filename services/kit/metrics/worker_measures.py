"""What an edge tells of its workers, where it has several (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import counter

WHO = "every edge that has several workers"

DEATHS = counter(
    "penstock_worker_deaths_total",
    "Workers that ended, and were started again",
    more="nobody had told them to; should stay 0",
)
