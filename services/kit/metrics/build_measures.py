"""Define the metric of the version (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import Label, gauge

WHO = "every process, also the operator and the console"

INFO = gauge("penstock_build_info", "Version of Penstock, always 1", Label("version", "1"))
