"""The alert rules: as the chart's files have them, and values with which a release has them all."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.chart.chart import CHART, nested
from tests.chart.console import CONSOLE
from tools.kubernetes.programs import find

ROOT = Path(__file__).parents[2]
RULES = CHART / "files" / "rules" / "alerts.yaml"
RULE = nested("monitoring.prometheusRule.enabled", True)
BACKLOG = nested("monitoring.prometheusRule", {"enabled": True, "oldestMessageSeconds": 3600})
ON = {**BACKLOG, "analytics": {"enabled": True}, **CONSOLE}


def alerts(groups: Any) -> dict[str, Any]:
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def rules() -> dict[str, Any]:
    """By the alert's name."""
    return alerts(yaml.safe_load(RULES.read_text())["groups"])


def promtool(*words: str) -> str:
    done = subprocess.run([find("promtool"), *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
