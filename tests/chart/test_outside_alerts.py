"""Alerts for those outside Kubernetes say the same as the chart's, of jobs and instances."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.alert_cases import CASES, HARMLESS, Case, Series
from tests.chart.rules import ROOT, RULES, alerts, promtool, rules
from tests.chart.trying import run
from tools.outside_rules import LEFT_OUT, document

EXAMPLES = ROOT / "docs" / "examples" / "prometheus"
FILE = EXAMPLES / "alerts.yaml"
OWN: dict[str, Any] = alerts(yaml.safe_load(FILE.read_text())["groups"])


def test_it_is_of_the_charts_rules() -> None:
    """Else: make runbooks."""
    assert FILE.read_text() == document(RULES.read_text())


def test_each_alert_is_there_or_says_why_not() -> None:
    groups = {group["name"]: group["rules"] for group in yaml.safe_load(RULES.read_text())["groups"]}
    without = {rule["alert"] for name in groups.keys() & LEFT_OUT.keys() for rule in groups[name]}
    assert LEFT_OUT.keys() - groups.keys() <= rules().keys()
    assert OWN.keys() == rules().keys() - LEFT_OUT.keys() - without
    assert len(OWN) > 20


def test_the_page_names_those_that_are_left_out() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    assert [name for name in LEFT_OUT if name.startswith("Penstock") and name not in page] == []


def test_nothing_of_kubernetes_is_in_it() -> None:
    said = str([(rule["expr"], rule["annotations"]) for rule in OWN.values()])
    assert re.findall(r"\bnamespace\b|\bpods?\b|\bPods?\b|\bService\b|\brelease\b", said) == []


def test_prometheus_takes_both_files(tmp_path: Path) -> None:
    for name in ("alerts.yaml", "prometheus.yaml"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
    assert f"{len(OWN)} rules found" in promtool("check", "config", str(tmp_path / "prometheus.yaml"))


def outside(series: Series) -> Series:
    """As a scrape without Kubernetes has it."""
    jobs = {
        name.replace('namespace="shop"', 'job="penstock-shop"'): values for name, values in series.items()
    }
    return {re.sub(r"\bpod=", "instance=", name): values for name, values in jobs.items()}


@pytest.mark.parametrize("alert", OWN)
def test_it_sounds_for_the_same(tmp_path: Path, alert: str) -> None:
    cases: list[Case] = [
        replace(case, sounds=outside(case.sounds), silent=outside(case.silent))
        for case in CASES
        if case.alert == alert
    ]
    assert cases
    assert run(tmp_path, OWN[alert], cases, outside(HARMLESS)) == ""


@pytest.mark.parametrize("alert", [name for name, rule in OWN.items() if "absent(" not in rule["expr"]])
def test_of_other_jobs_it_says_nothing(tmp_path: Path, alert: str) -> None:
    """As `up` is there of each."""
    cases = [replace(case, sounds=outside(case.sounds), value=None) for case in CASES if case.alert == alert]
    others = [replace(case, silent=of_others(case.sounds)) for case in cases]
    assert run(tmp_path, OWN[alert], others, {}) == ""


def of_others(series: Series) -> Series:
    return {name.replace('job="penstock-shop"', 'job="node"'): values for name, values in series.items()}
