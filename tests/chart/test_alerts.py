"""Alerts of the chart's files fire when they should, on metrics that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from penstock_operator.metrics.metrics import Metrics

from tests.chart.rules import ROOT, alerts, check, rules
from tests.cli.shell import Up
from tools.metrics_docs import rows

TESTS = sorted((Path(__file__).parent / "alerts").glob("*.yaml"))
METRIC = re.compile(r"\bpenstock_[a-z_]+\b(?!=)")


@pytest.fixture(scope="module")
def own() -> dict[str, Any]:
    return rules()


@pytest.fixture(scope="module")
def metrics(up: Up) -> str:
    """Return the metrics of edges, operator and console."""
    pages = [Metrics().render().decode()]
    for edge in (*up.announcement["edges"].values(), up.announcement["console"]):
        host, port = edge["health"]["host"], edge["health"]["port"]
        with urlopen(f"http://{host}:{port}/metrics", timeout=20) as answer:
            pages.append(answer.read().decode())
    return "".join(pages)


def test_alerts_fire_where_expected_only(tmp_path: Path, own: dict[str, Any]) -> None:
    """Check the tests of alerts, each with only the rules that it asserts; values are text, as 0x3 is not a number."""
    tried = []
    expected: dict[bool, set[str]] = {True: set(), False: set()}
    for file in TESTS:
        for one in yaml.load(file.read_text(), yaml.BaseLoader)["tests"]:
            for each in one["alert_rule_test"]:
                expected[bool(each["exp_alerts"])].add(each["alertname"])
            asked = dict.fromkeys(each["alertname"] for each in one["alert_rule_test"])
            tried.append(([own[name] for name in asked], {"evaluation_interval": "1m", "tests": [one]}))
    check(tmp_path, tried)
    assert expected[True] == expected[False] == set(own)


def test_alerts_use_existing_metrics(own: dict[str, Any]) -> None:
    """Check that alerts and dashboards use existing metrics; tests/monitoring checks that dashboards show data."""
    there = {row.measure.name for row in rows()}
    asked = {metric for rule in own.values() for metric in METRIC.findall(rule["expr"])}
    assert len(asked) > 15
    assert {metric for metric in asked if metric.removesuffix("_bucket") not in there} == set()


def test_reasons_in_alerts_exist(own: dict[str, Any]) -> None:
    sources = "".join(
        path.read_text() for folder in ("services", "operator") for path in (ROOT / folder).rglob("*.py")
    )
    reasons = [
        reason
        for rule in own.values()
        for group in re.findall(r'reason=~?"([^"]*)"', rule["expr"])
        for reason in group.split("|")
    ]
    assert len(reasons) > 12
    assert [reason for reason in reasons if f'"{reason}"' not in sources] == []


def test_counters_of_alerts_start_at_0(own: dict[str, Any], metrics: str) -> None:
    """Check that counters in increase() start at 0: it misses the first event of a new counter."""
    rising = [
        found for rule in own.values() for found in re.findall(r"increase\((\w+)\{([^}]*)\}", rule["expr"])
    ]
    assert len(rising) > 5
    for metric, labels in rising:
        (reasons,) = re.findall(r'reason=~?"([^"]*)"', labels) or [""]
        for reason in reasons.split("|"):
            labelled = rf'\{{[^}}]*reason="{reason}"[^}}]*\}}' if reason else r"(?:\{[^}]*\})?"
            there = re.search(rf"^{metric}{labelled} 0\.0$", metrics, re.MULTILINE)
            assert there, (metric, reason)


def test_rule_of_the_page_detects_a_blocked_bridge(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yml\n(.*?)```", (ROOT / "docs" / "sysv.md").read_text(), re.DOTALL)
    (rule,) = alerts(yaml.safe_load(block)["groups"]).values()
    assert METRIC.findall(rule["expr"]) == ["penstock_sysv_waiting"]
    assert "penstock_sysv_waiting" in {row.measure.name for row in rows()}
    summary = "Mapping 0x2a:orders on till:9161 carries nothing"
    fired = {
        "exp_labels": {"instance": "till:9161", "mapping": "0x2a:orders", "severity": "warning"},
        "exp_annotations": {**rule["annotations"], "summary": summary},
    }
    series = [
        {
            "series": f'penstock_sysv_waiting{{edge="sysv",instance="till:9161",mapping="{name}"}}',
            "values": values,
        }
        for name, values in (("0x2a:orders", "1x60"), ("0x2b:bills", "1x10 0x5 1x10 0x35"))
    ]
    asked = [
        {"eval_time": "20m", "alertname": rule["alert"], "exp_alerts": [fired]},
        {"eval_time": "14m", "alertname": rule["alert"], "exp_alerts": []},
    ]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": asked}
    check(tmp_path, [([rule], {"tests": [test]})])


def test_inhibit_rules_of_the_page(own: dict[str, Any]) -> None:
    """Check that the names of inhibit rules exist, and that each source fires no later than its targets."""
    (found,) = re.findall(
        r"```yml\n(inhibit_rules:.*?)```", (ROOT / "docs" / "chart.md").read_text(), re.DOTALL
    )
    rules = yaml.safe_load(found)["inhibit_rules"]
    for rule in rules:
        (source,) = re.findall(r'alertname="(\w+)"', *rule["source_matchers"])
        (targets,) = re.findall(r'alertname=~"([\w|]+)"', *rule["target_matchers"])
        assert rule["equal"] == (["namespace", "edge"] if "Edge" in source else ["namespace"])
        for target in targets.split("|"):
            assert _minutes(own[source]) <= _minutes(own[target]), (source, target)
        assert own[source]["labels"]["severity"] == "critical"
    assert len(rules) == 3


def _minutes(rule: dict[str, Any]) -> int:
    return int(rule["for"].removesuffix("m"))
