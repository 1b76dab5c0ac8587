"""Which alerts a release has, with which numbers, and of whose pods."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.chart import NAME, Values, nested, render
from tests.chart.console import CONSOLE
from tests.chart.rules import ON, RULE, alerts, promtool, rules

OF_THE_RELEASE = f'namespace="shop",pod=~"{NAME}-(pubsub|ring|rqp|tmq|operator|console)-.+"'

OWN_CLAIM = f'namespace="shop",persistentvolumeclaim="data-{NAME}-redis-0"'


@pytest.fixture(scope="module")
def own() -> dict[str, Any]:
    return rules()


def test_the_rules_of_a_release_are_about_its_pods(tmp_path: Path, own: dict[str, Any]) -> None:
    groups = render(ON)[f"PrometheusRule/{NAME}"]["spec"]["groups"]
    rendered = alerts(groups)
    assert rendered.keys() == own.keys()
    for name, rule in rendered.items():
        expr = own[name]["expr"].replace('namespace!=""', OF_THE_RELEASE)  # 2 pods each: the chart's default
        expr = expr.replace('persistentvolumeclaim!=""', OWN_CLAIM)
        edges = ("pubsub", "ring", "rqp", "tmq") if 'edge!=""' in expr else ("",)
        assert rule["expr"] == " or ".join(expr.replace('edge!=""', f'edge="{edge}"') for edge in edges)
        theirs = rule["expr"].count("{" + OF_THE_RELEASE) + rule["expr"].count("{" + OWN_CLAIM + "}")
        assert rule["expr"].count("{") == theirs
        assert rule["annotations"] == own[name]["annotations"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    assert f"{len(own)} rules found" in promtool("check", "rules", str(tmp_path / "rules.yaml"))


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


def test_nobody_misses_an_operator_that_is_off() -> None:
    groups = render(ON, nested("operator.enabled", False))[f"PrometheusRule/{NAME}"]["spec"]["groups"]
    assert "PenstockEdgesGone" in alerts(groups)
    assert [name for name in alerts(groups) if "Operator" in name] == []


def test_how_queues_stand_is_told_by_the_operator_or_the_console() -> None:
    """Alerts about it are there where either is."""

    def is_there(*values: Values) -> bool:
        groups = render(RULE, *values)[f"PrometheusRule/{NAME}"]["spec"]["groups"]
        return "PenstockDeadLetters" in alerts(groups)

    off = nested("operator.enabled", False)
    assert is_there()
    assert is_there(off, CONSOLE)
    assert not is_there(off)
    assert not is_there(off, CONSOLE, nested("console.replicas", 0))


def test_a_disk_fills_up_where_the_store_is_the_charts_own() -> None:
    """By the name of the claim that there is then."""

    def is_there(*values: Values) -> bool:
        groups = render(RULE, *values)[f"PrometheusRule/{NAME}"]["spec"]["groups"]
        return "PenstockStoreDiskFillsUp" in alerts(groups)

    own = render(RULE)[f"StatefulSet/{NAME}-redis"]["spec"]["volumeClaimTemplates"]
    assert [f"{claim['metadata']['name']}-{NAME}-redis-0" for claim in own] == [f"data-{NAME}-redis-0"]
    assert is_there()
    assert not is_there(nested("redis.persistence.enabled", False))
    assert not is_there({"redis": {"enabled": False}, "externalRedis": {"url": "redis://e:e@store:6379/0"}})


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


def test_dead_letters_of_some_queues_may_be_meant_to_be(tmp_path: Path, own: dict[str, Any]) -> None:
    """Those that somebody names are left out, by their whole names, also of what died while nobody looked."""
    except_ = ["returns", 'odd"\\d.*']
    values = nested(
        "monitoring",
        {
            "queues": {"enabled": True},
            "prometheusRule": {"enabled": True, "deadLettersExceptQueues": except_},
        },
    )
    rule = render(values)[f"PrometheusRule/{NAME}"]["spec"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rule))
    annotations = own["PenstockDeadLetters"]["annotations"]

    def told(number: int, **labels: str) -> dict[str, Any]:
        of = f" of queue {labels['queue']}" if labels else ""
        return {
            "exp_labels": {"namespace": "shop", "severity": "warning", **labels},
            "exp_annotations": {**annotations, "summary": f"{number} more dead letters{of} within an hour"},
        }

    def series(metric: str, queue: str, values: str) -> dict[str, str]:
        labels = f'namespace="shop",pod="{NAME}-operator-0",queue={json.dumps(queue)}'
        return {"series": f"penstock_queue_{metric}{{{labels}}}", "values": values}

    def test(when: str, expected: list[dict[str, Any]], *there: dict[str, str]) -> dict[str, Any]:
        asked = [{"eval_time": when, "alertname": "PenstockDeadLetters", "exp_alerts": expected}]
        return {"interval": "1m", "input_series": list(there), "alert_rule_test": asked}

    tests = [
        test("22m", [], *(series("died_messages_total", queue, "0x20 2x200") for queue in except_)),
        test(
            "22m",
            [told(2, queue="returns2"), told(2, queue="odd"), told(2, queue="_other")],
            *(
                series("died_messages_total", queue, "0x20 2x200")
                for queue in (*except_, "returns2", "odd", "_other")
            ),
        ),
        # while nobody looked
        test("95m", [], *(series("dead_messages", queue, "3x20 _x70 8x200") for queue in except_)),
        test(
            "95m",
            [told(5)],
            *(series("dead_messages", queue, "3x20 _x70 8x200") for queue in (*except_, "orders")),
            series("died_messages_total", "returns", "0x20 _x30 2+1x200"),
        ),
    ]
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": tests}))
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "test.yaml"))


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


@pytest.mark.parametrize(
    ("operator", "console", "replicas"),
    [(True, False, 1), (False, True, 1), (True, True, 0), (False, True, 0), (False, False, 1)],
)
def test_a_report_that_does_not_come_is_missed_by_whoever_tells_of_reports(
    operator: bool, console: bool, replicas: int
) -> None:
    """Operator or console; without either nobody could see it."""
    its = {"enabled": console, "replicas": replicas}
    settings = ({"analytics": {"enabled": True}}, nested("operator.enabled", operator), {"console": its})
    told = alerts(render(ON, *settings)[f"PrometheusRule/{NAME}"]["spec"]["groups"])
    assert ("PenstockAnalyticsStale" in told) == (operator or bool(console and replicas))
