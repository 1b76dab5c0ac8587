"""Declare the metric of a process's version."""

from __future__ import annotations

from services.kit.measure import Label, gauge

WHO = "every process, also the operator and the console"

INFO = gauge("penstock_build_info", "Version of the process; the value is 1", Label("version", "1"))
