"""The alert rules: from the chart's files, and from a release whose values enable all of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.chart.chart import CHART, NAME, Values, nested, render
from tests.chart.console import CONSOLE
from tools.kubernetes.programs import find

ROOT = Path(__file__).parents[2]
RULES = CHART / "files" / "rules" / "alerts.yaml"
RULE = nested("monitoring.prometheusRule.enabled", True)
BACKLOG = nested("monitoring.prometheusRule", {"enabled": True, "oldestMessageSeconds": 3600})
ON = {**BACKLOG, "analytics": {"enabled": True}, **CONSOLE}
Rule = dict[str, Any]


def alerts(groups: Any) -> dict[str, Rule]:
    """Return rules by the name of their alert."""
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def rules() -> dict[str, Rule]:
    """Return the rules of the chart's file by the name of their alert."""
    return alerts(yaml.safe_load(RULES.read_text())["groups"])


def released(*values: Values) -> dict[str, Rule]:
    """Return the rules of a release by the name of their alert."""
    return alerts(render(*values)[f"PrometheusRule/{NAME}"]["spec"]["groups"])


def check(folder: Path, tried: Iterable[tuple[Iterable[Rule], Mapping[str, Any]]]) -> None:
    """Run promtool once on test documents, each with its own rules."""
    files = []
    for number, (own, document) in enumerate(tried):
        rule_file, test = (folder / f"{kind}{number}.yaml" for kind in ("rules", "test"))
        rule_file.write_text(json.dumps({"groups": [{"name": "own", "rules": list(own)}]}))
        test.write_text(json.dumps({"rule_files": [rule_file.name], **document}))
        files.append(str(test))
    assert promtool("test", "rules", *files).count("SUCCESS") == len(files) > 0


def promtool(*words: str) -> str:
    """Return promtool's output; it must succeed."""
    done = subprocess.run([find("promtool"), *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
