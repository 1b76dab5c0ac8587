"""Which Penstock a process is (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import Label, gauge

WHO = "every process, also the operator and the console"

INFO = gauge("penstock_build_info", "The version that it is, with the value 1", Label("version", "1"))
