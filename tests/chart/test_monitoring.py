"""Alerts sound where they must, on metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from penstock_operator.metrics import Metrics

from tests.chart.chart import CHART, NAME, RELEASE, Values, nested, render
from tests.chart.console import CONSOLE
from tests.chart.rules import ON, ROOT, RULE, RULES, alerts, promtool, rules
from tests.cli.shell import Up
from tools.metrics_docs import rows

DASHBOARDS = CHART / "files" / "dashboards"
RULES_TEST = Path(__file__).with_name("alerts_test.yaml")
METRIC = re.compile(r"\bpenstock_[a-z_]+\b(?!=)")
INSTANCE = "app.kubernetes.io/instance"  # dashboards ask for it
OF_THE_RELEASE = f'namespace="shop",pod=~"{NAME}-(pubsub|ring|rqp|tmq|operator|console)-.+"'


@pytest.fixture(scope="module")
def own() -> dict[str, Any]:
    return rules()


@pytest.fixture(scope="module")
def told(up: Up) -> str:
    """What edges, the operator and the console tell."""
    pages = [Metrics().render().decode()]
    for edge in (*up.told["edges"].values(), up.told["console"]):
        host, port = edge["health"]["host"], edge["health"]["port"]
        with urlopen(f"http://{host}:{port}/metrics", timeout=20) as answer:
            pages.append(answer.read().decode())
    return "".join(pages)


def test_alerts_sound_where_they_must_and_nowhere_else(tmp_path: Path, own: dict[str, Any]) -> None:
    for file in (RULES, RULES_TEST):
        shutil.copy(file, tmp_path)
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / RULES_TEST.name))
    tests = [
        each for one in yaml.safe_load(RULES_TEST.read_text())["tests"] for each in one["alert_rule_test"]
    ]
    assert {each["alertname"] for each in tests if each["exp_alerts"]} == set(own)
    assert {each["alertname"] for each in tests if not each["exp_alerts"]} == set(own)


def test_the_rules_of_a_release_are_about_its_pods(tmp_path: Path, own: dict[str, Any]) -> None:
    groups = render(ON)[f"PrometheusRule/{NAME}"]["spec"]["groups"]
    rendered = alerts(groups)
    assert rendered.keys() == own.keys()
    for name, rule in rendered.items():
        expr = own[name]["expr"].replace('namespace!=""', OF_THE_RELEASE)  # 2 pods each: the chart's default
        edges = ("pubsub", "ring", "rqp", "tmq") if 'edge!=""' in expr else ("",)
        assert rule["expr"] == " or ".join(expr.replace('edge!=""', f'edge="{edge}"') for edge in edges)
        assert rule["expr"].count("{") == rule["expr"].count("{" + OF_THE_RELEASE)
        assert rule["annotations"] == own[name]["annotations"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    assert f"{len(own)} rules found" in promtool("check", "rules", str(tmp_path / "rules.yaml"))


def test_alerts_are_about_metrics_that_there_are(own: dict[str, Any]) -> None:
    """Also those of dashboards are; tests/monitoring looks whether they show something."""
    there = {row.measure.name for row in rows()}
    asked = {metric for rule in own.values() for metric in METRIC.findall(rule["expr"])}
    assert len(asked) > 15
    assert {metric for metric in asked if metric.removesuffix("_bucket") not in there} == set()


def test_reasons_in_alerts_are_words_of_the_product(own: dict[str, Any]) -> None:
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


def test_what_alerts_see_rise_is_there_before_it_does(own: dict[str, Any], told: str) -> None:
    """A counter that is born with its first event has no increase then. Those of rate() go on rising."""
    rising = [
        found for rule in own.values() for found in re.findall(r"increase\((\w+)\{([^}]*)\}", rule["expr"])
    ]
    assert len(rising) > 5
    for metric, labels in rising:
        (reasons,) = re.findall(r'reason=~?"([^"]*)"', labels) or [""]
        for reason in reasons.split("|"):
            labelled = rf'\{{[^}}]*reason="{reason}"[^}}]*\}}' if reason else r"(?:\{[^}]*\})?"
            assert re.search(rf"^{metric}{labelled} 0\.0$", told, re.MULTILINE), (
                metric,
                reason,
            )


def test_a_bridge_that_stands_still_is_seen_by_the_rule_of_its_page(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yml\n(.*?)```", (ROOT / "docs" / "sysv.md").read_text(), re.DOTALL)
    (tmp_path / "rules.yaml").write_text(block)
    (rule,) = alerts(yaml.safe_load(block)["groups"]).values()
    assert METRIC.findall(rule["expr"]) == ["penstock_sysv_waiting"]
    assert "penstock_sysv_waiting" in {row.measure.name for row in rows()}
    summary = "Mapping 0x2a:orders on till:9161 carries nothing"
    told = {
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
        {"eval_time": "20m", "alertname": rule["alert"], "exp_alerts": [told]},
        {"eval_time": "14m", "alertname": rule["alert"], "exp_alerts": []},
    ]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": asked}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "test.yaml"))


def test_grafanas_sidecar_finds_the_dashboards() -> None:
    found = render(nested("monitoring.dashboards.enabled", True))[f"ConfigMap/{NAME}-dashboards"]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    files = {f"penstock-{path.name}": json.loads(path.read_text()) for path in DASHBOARDS.glob("*.json")}
    assert len(files) == 5
    assert {name: json.loads(text) for name, text in found["data"].items()} == files


def test_prometheus_finds_every_pod_with_a_health_port_once() -> None:
    rendered = render(
        CONSOLE, nested("monitoring.podMonitor", {"enabled": True, "additionalLabels": {"release": "p"}})
    )
    monitor = rendered[f"PodMonitor/{NAME}"]
    assert monitor["metadata"]["labels"]["release"] == "p"
    assert INSTANCE in monitor["spec"]["podTargetLabels"]
    wanted = monitor["spec"]["selector"]
    for place, pod in rendered.pods():
        labels = (pod.get("metadata") or {}).get("labels", {})
        ports = [port["name"] for each in pod["spec"]["containers"] for port in each.get("ports", ())]
        assert _selects(wanted, labels) == ("health" in ports), place
        assert not _selects(wanted, labels) or labels[INSTANCE] == RELEASE
    (expression,) = wanted["matchExpressions"]
    assert expression["values"] == ["pubsub", "ring", "rqp", "tmq", "operator", "console"]


def test_an_edge_that_is_gone_is_told_though_others_are_there(tmp_path: Path) -> None:
    """Not of those that may have no pods."""
    keda = {"type": "keda", "minReplicas": 0, "keda": {"serverAddress": "http://p"}}
    values = {"tmq": {}, "pubsub": {}, "rqp": {"autoscaling": keda}, "ring": {"replicas": 0}}
    rule = render(RULE, {"edges": values})[f"PrometheusRule/{NAME}"]["spec"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rule))
    told = {
        "exp_labels": {"namespace": "shop", "edge": "tmq", "severity": "critical"},
        "exp_annotations": {
            "summary": "Edge tmq tells nothing",
            "description": alerts(rule["groups"])["PenstockEdgesGone"]["annotations"]["description"],
        },
    }
    series = [
        {"series": f'penstock_ready{{namespace="{where}",edge="{edge}",pod="{pod}"}}', "values": "1x30"}
        for where, edge, pod in (
            ("shop", "pubsub", f"{NAME}-pubsub-0"),
            ("yard", "tmq", f"{NAME}-tmq-0"),
            ("shop", "tmq", "west-penstock-tmq-0"),  # another release in the same namespace
        )
    ]
    asked = [{"eval_time": "17m", "alertname": "PenstockEdgesGone", "exp_alerts": [told]}]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": asked}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "test.yaml"))


def test_an_operator_is_missed_though_another_release_of_the_namespace_has_one(tmp_path: Path) -> None:
    """And its faults are told by that release alone."""
    rule = render(ON)[f"PrometheusRule/{NAME}"]["spec"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rule))
    series = 'penstock_operator_store_up{namespace="shop",pod="west-penstock-operator-0"}'
    annotations = alerts(rule["groups"])["PenstockOperatorGone"]["annotations"]
    gone = {"exp_labels": {"namespace": "shop", "severity": "warning"}, "exp_annotations": annotations}
    asked = [
        {"eval_time": "27m", "alertname": "PenstockOperatorGone", "exp_alerts": [gone]},
        {"eval_time": "27m", "alertname": "PenstockOperatorStoreDown", "exp_alerts": []},
    ]
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": "0x60"}],
        "alert_rule_test": asked,
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "test.yaml"))


def test_each_edge_is_missed_by_the_number_of_its_own_pods() -> None:
    hpa = {"type": "hpa", "minReplicas": 4, "maxReplicas": 8}
    edges = {"tmq": {"replicas": 5}, "rqp": {"autoscaling": hpa}, "ring": {"replicas": 0}}
    groups = render(RULE, {"edges": edges})[f"PrometheusRule/{NAME}"]["spec"]["groups"]
    expr = alerts(groups)["PenstockPodsMissing"]["expr"]
    found = re.findall(r'edge="(\w+)"}\) < (\d+)', expr)
    assert found == [("pubsub", "2"), ("rqp", "4"), ("tmq", "5")]


def test_without_an_edge_nobody_misses_one() -> None:
    groups = render(RULE, {"edgeDefaults": {"replicas": 0}})[f"PrometheusRule/{NAME}"]["spec"]["groups"]
    assert "PenstockEdgesGone" not in alerts(groups)


def test_a_console_is_missed_where_there_is_one() -> None:
    """Nobody is woken for it."""

    def found(*values: Values) -> dict[str, Any]:
        return alerts(render(RULE, *values)[f"PrometheusRule/{NAME}"]["spec"]["groups"])

    there = found(CONSOLE)
    assert "PenstockConsoleGone" in there
    assert {rule["labels"]["severity"] for name, rule in there.items() if "Console" in name} == {"warning"}
    assert 'edge="console"' not in there["PenstockEdgesGone"]["expr"]
    assert [name for name in found(CONSOLE, nested("console.replicas", 0)) if "Console" in name] == []
    assert [name for name in found() if "Console" in name] == []


def test_one_alert_silences_those_whose_cause_it_is(own: dict[str, Any]) -> None:
    """As chart.md gives it to Alertmanager: names that there are, and each source sounds no later than its targets."""
    (found,) = re.findall(
        r"```yml\n(inhibit_rules:.*?)```", (ROOT / "docs" / "chart.md").read_text(), re.DOTALL
    )
    rules = yaml.safe_load(found)["inhibit_rules"]
    for rule in rules:
        (source,) = re.findall(r'alertname="(\w+)"', *rule["source_matchers"])
        (targets,) = re.findall(r'alertname=~"([\w|]+)"', *rule["target_matchers"])
        assert rule["equal"] == (["namespace", "edge"] if source == "PenstockEdgeNotReady" else ["namespace"])
        for target in targets.split("|"):
            assert _minutes(own[source]) <= _minutes(own[target]), (source, target)
        assert own[source]["labels"]["severity"] == "critical"
    assert len(rules) == 2


def _minutes(rule: dict[str, Any]) -> int:
    return int(rule["for"].removesuffix("m"))


def test_a_message_is_too_old_where_somebody_says_so() -> None:
    off = alerts(render(RULE)[f"PrometheusRule/{NAME}"]["spec"]["groups"])
    assert "PenstockBacklog" not in off
    values = nested("monitoring.prometheusRule.oldestMessageSeconds", 90)
    found = alerts(render(RULE, values)[f"PrometheusRule/{NAME}"]["spec"]["groups"])
    assert found["PenstockBacklog"]["expr"].endswith(" > 90")


def test_a_queue_is_nearly_full_where_somebody_says_so() -> None:
    def found(*values: Values) -> dict[str, Any]:
        return alerts(render(RULE, *values)[f"PrometheusRule/{NAME}"]["spec"]["groups"])

    for percent in (5, 99):
        expr = found(nested("monitoring.prometheusRule.fullQueuePercent", percent))["PenstockQueueFillsUp"][
            "expr"
        ]
        assert expr.endswith(f" > {percent / 100:.2f}")
    assert "PenstockQueueFillsUp" in found()
    assert "PenstockQueueFillsUp" not in found(nested("monitoring.prometheusRule.fullQueuePercent", 0))


def test_how_queues_stand_is_told_by_the_operator_or_the_console() -> None:
    """Alerts about it are there where either is."""

    def is_there(*values: Values) -> bool:
        groups = render(RULE, *values)[f"PrometheusRule/{NAME}"]["spec"]["groups"]
        return "PenstockDeadLetters" in alerts(groups)

    off = nested("operator.enabled", False)
    assert is_there()
    assert is_there(off, CONSOLE)
    assert not is_there(off)


def test_a_report_has_as_long_as_the_schedule_needs(tmp_path: Path, own: dict[str, Any]) -> None:
    """The first one, too: a job of each day is not missed in the first hours of a release."""
    seconds = 90_000
    values = nested("monitoring.prometheusRule.analyticsStaleSeconds", seconds)
    rule = render(ON, values)[f"PrometheusRule/{NAME}"]["spec"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rule))
    up = f'penstock_operator_store_up{{namespace="shop",pod="{NAME}-operator-0"}}'
    told = {
        "exp_labels": {"namespace": "shop", "severity": "warning"},
        "exp_annotations": own["PenstockAnalyticsNoReport"]["annotations"],
    }
    test = {
        "interval": "1m",
        "input_series": [{"series": up, "values": "1x1600"}],
        "alert_rule_test": [
            {"eval_time": "1499m", "alertname": "PenstockAnalyticsNoReport", "exp_alerts": []},
            {"eval_time": "1499m", "alertname": "PenstockAnalyticsStale", "exp_alerts": []},
            {"eval_time": "1501m", "alertname": "PenstockAnalyticsNoReport", "exp_alerts": [told]},
        ],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "test.yaml"))
    stale = alerts(rule["groups"])["PenstockAnalyticsStale"]["expr"]
    assert stale.endswith(f"> {seconds}")


@pytest.mark.parametrize("kind", ["ClusterIP", "NodePort", "LoadBalancer"])
def test_services_lead_to_every_pod_with_a_health_port_once(kind: str) -> None:
    """Edges', the operator's and the console's, for a ServiceMonitor; never from outside."""
    rendered = render(
        CONSOLE,
        nested("monitoring.serviceMonitor.enabled", True),
        nested("edgeDefaults.service.type", kind),
        nested("console.service.type", kind),
    )
    monitor = rendered[f"ServiceMonitor/{NAME}"]["spec"]
    assert INSTANCE in monitor["targetLabels"]
    wanted = monitor["selector"]  # by the label of that name, too
    led = [
        each["spec"]["selector"]["app.kubernetes.io/component"]
        for each in rendered.of("Service")
        if _selects(wanted, each["metadata"]["labels"])
        and "health" in [port["name"] for port in each["spec"]["ports"]]
    ]
    assert sorted(led) == ["console", "operator", "pubsub", "ring", "rqp", "tmq"]
    for each in rendered.of("Service"):
        if "health" in [port["name"] for port in each["spec"]["ports"]]:
            assert each["spec"].get("type", "ClusterIP") == "ClusterIP"


def test_without_a_servicemonitor_nobody_needs_a_second_service() -> None:
    rendered = render(nested("edgeDefaults.service.type", "NodePort"))
    assert f"Service/{NAME}-tmq-health" not in rendered


def test_nobody_misses_an_operator_that_is_off() -> None:
    groups = render(ON, nested("operator.enabled", False))[f"PrometheusRule/{NAME}"]["spec"]["groups"]
    assert "PenstockEdgesGone" in alerts(groups)
    assert [name for name in alerts(groups) if "Operator" in name] == []


def test_a_report_that_does_not_come_is_missed_by_whoever_tells_of_reports() -> None:
    """Operator or console; without either nobody could see it."""
    for operator, console in ((True, False), (False, True), (False, False)):
        settings = (nested("analytics.enabled", True), nested("operator.enabled", operator))
        rendered = render(ON, *settings, nested("console.enabled", console))
        told = alerts(rendered[f"PrometheusRule/{NAME}"]["spec"]["groups"])
        assert ("PenstockAnalyticsStale" in told) == (operator or console)


def _selects(selector: Any, labels: dict[str, str]) -> bool:
    (expression,) = selector["matchExpressions"]
    return (
        selector["matchLabels"].items() <= labels.items()
        and labels.get(expression["key"]) in expression["values"]
    )
