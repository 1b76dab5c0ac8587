"""Declare the metric of an edge's workers."""

from __future__ import annotations

from services.kit.measure import counter

WHO = "every edge with several workers"

DEATHS = counter(
    "penstock_worker_deaths_total",
    "Workers that died and were restarted",
    more="should stay 0",
)
