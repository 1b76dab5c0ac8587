"""The alerts of a release, with their thresholds and pods."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.chart import NAME, Values, nested, render
from tests.chart.console import CONSOLE
from tests.chart.rules import ON, RULE, Rule, check, promtool, released, rules

OF_THE_RELEASE = f'namespace="shop",pod=~"{NAME}-(pubsub|ring|rqp|tmq|operator|console)-.+"'
OWN_CLAIM = f'namespace="shop",persistentvolumeclaim="data-{NAME}-redis-0"'
OFF = nested("operator.enabled", False)
NO_CONSOLE = nested("console.replicas", 0)


def test_rules_select_pods_of_the_release(tmp_path: Path) -> None:
    own, groups = rules(), render(ON)[f"PrometheusRule/{NAME}"]["spec"]["groups"]
    rendered = released(ON)
    assert rendered.keys() == own.keys()
    for name, rule in rendered.items():
        expr = own[name]["expr"].replace('namespace!=""', OF_THE_RELEASE)  # 2 pods each, the chart's default
        expr = expr.replace('persistentvolumeclaim!=""', OWN_CLAIM)
        edges = ("pubsub", "ring", "rqp", "tmq") if 'edge!=""' in expr else ("",)
        assert rule["expr"] == " or ".join(expr.replace('edge!=""', f'edge="{edge}"') for edge in edges)
        theirs = rule["expr"].count("{" + OF_THE_RELEASE) + rule["expr"].count("{" + OWN_CLAIM + "}")
        assert rule["expr"].count("{") == theirs
        assert rule["annotations"] == own[name]["annotations"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    assert f"{len(own)} rules found" in promtool("check", "rules", str(tmp_path / "rules.yaml"))


# Firing alerts --------------------------------------------------------------------------------------------------------

Tried = tuple[list[Rule], dict[str, Any]]


def ready(namespace: str, edge: str, pod: str) -> dict[str, str]:
    series = f'penstock_ready{{namespace="{namespace}",edge="{edge}",pod="{pod}"}}'
    return {"series": series, "values": "1x30"}


def one_edge_of_several_is_gone() -> Tried:
    """Return a case where only edges that should have pods count, without those of other releases."""
    keda = {"type": "keda", "minReplicas": 0, "keda": {"serverAddress": "http://p"}}
    values = {"tmq": {}, "pubsub": {}, "rqp": {"autoscaling": keda}, "ring": {"replicas": 0}}
    rule = released(RULE, {"edges": values})["PenstockEdgesGone"]
    gone = {
        "exp_labels": {"namespace": "shop", "edge": "tmq", "severity": "critical"},
        "exp_annotations": {**rule["annotations"], "summary": "No metrics of edge tmq"},
    }
    series = [
        ready("shop", "pubsub", f"{NAME}-pubsub-0"),
        ready("yard", "tmq", f"{NAME}-tmq-0"),
        ready("shop", "tmq", "west-penstock-tmq-0"),
    ]
    return [rule], document(series, {("17m", rule["alert"]): [gone]})


def another_release_of_the_namespace_has_an_operator() -> Tried:
    """Return a case where only the release that owns the operator alerts."""
    gone, down = (released(ON)[f"PenstockOperator{what}"] for what in ("Gone", "StoreDown"))
    series = 'penstock_operator_store_up{namespace="shop",pod="west-penstock-operator-0"}'
    fired = {
        "exp_labels": {"namespace": "shop", "severity": "warning"},
        "exp_annotations": gone["annotations"],
    }
    asked = {("27m", gone["alert"]): [fired], ("27m", down["alert"]): []}
    return [gone, down], document([{"series": series, "values": "0x60"}], asked)


def the_first_report_may_take_as_long_as_any_other() -> Tried:
    """Return a case where a daily job does not alert in the first hours of a release."""
    found = released(ON, nested("monitoring.prometheusRule.analyticsStaleSeconds", 90_000))
    stale, none = found["PenstockAnalyticsStale"], found["PenstockAnalyticsNoReport"]
    assert stale["expr"].endswith("> 90000")
    up = f'penstock_operator_store_up{{namespace="shop",pod="{NAME}-operator-0"}}'
    fired = {
        "exp_labels": {"namespace": "shop", "severity": "warning"},
        "exp_annotations": none["annotations"],
    }
    asked = {("1499m", none["alert"]): [], ("1499m", stale["alert"]): [], ("1501m", none["alert"]): [fired]}
    return [stale, none], document([{"series": up, "values": "1x1600"}], asked)


def document(
    series: list[dict[str, str]], asked: dict[tuple[str, str], list[dict[str, Any]]]
) -> dict[str, Any]:
    questions = [
        {"eval_time": when, "alertname": alert, "exp_alerts": expected}
        for (when, alert), expected in asked.items()
    ]
    return {"tests": [{"interval": "1m", "input_series": series, "alert_rule_test": questions}]}


def dead_letters_of_some_queues_are_meant_to_be() -> Tried:
    """Return a case where dead letters of listed queues fire no alert; names match completely."""
    except_ = ["returns", 'odd"\\d.*']
    monitoring = {
        "queues": {"enabled": True},
        "prometheusRule": {"enabled": True, "deadLettersExceptQueues": except_},
    }
    rule = released({"monitoring": monitoring})["PenstockDeadLetters"]

    def fired(number: int, **labels: str) -> dict[str, Any]:
        of = f" of queue {labels['queue']}" if labels else ""
        summary = f"{number} more dead letters{of} within an hour"
        return {
            "exp_labels": {"namespace": "shop", "severity": "warning", **labels},
            "exp_annotations": {**rule["annotations"], "summary": summary},
        }

    def series(metric: str, values: str, *queues: str) -> list[dict[str, str]]:
        labels = f'namespace="shop",pod="{NAME}-operator-0"'
        return [
            {"series": f"penstock_queue_{metric}{{{labels},queue={json.dumps(queue)}}}", "values": values}
            for queue in queues
        ]

    died, dead = ("died_messages_total", "0x20 2x200"), ("dead_messages", "3x20 _x70 8x200")
    returned = series("died_messages_total", "0x20 _x30 2+1x200", "returns")
    others = ("returns2", "odd", "_other")
    cases = [
        (series(*died, *except_), "22m", []),
        (series(*died, *except_, *others), "22m", [fired(2, queue=queue) for queue in others]),
        (series(*dead, *except_), "95m", []),
        ([*series(*dead, *except_, "orders"), *returned], "95m", [fired(5)]),
    ]
    made = [document(there, {(when, rule["alert"]): expected}) for there, when, expected in cases]
    return [rule], {"tests": [test for each in made for test in each["tests"]]}


def test_rules_fire_for_their_release_with_its_numbers(tmp_path: Path) -> None:
    tried = (
        one_edge_of_several_is_gone,
        another_release_of_the_namespace_has_an_operator,
        the_first_report_may_take_as_long_as_any_other,
        dead_letters_of_some_queues_are_meant_to_be,
    )
    check(tmp_path, [each() for each in tried])


# Rules ----------------------------------------------------------------------------------------------------------------


def test_each_edge_has_its_own_number_of_pods() -> None:
    hpa = {"type": "hpa", "minReplicas": 4, "maxReplicas": 8}
    edges = {"tmq": {"replicas": 5}, "rqp": {"autoscaling": hpa}, "ring": {"replicas": 0}}
    expr = released(RULE, {"edges": edges})["PenstockPodsMissing"]["expr"]
    found = re.findall(r'edge="(\w+)"}\) < (\d+)', expr)
    assert found == [("pubsub", "2"), ("rqp", "4"), ("tmq", "5")]
    assert "PenstockEdgesGone" not in released(RULE, {"edgeDefaults": {"replicas": 0}})


def test_console_alerts_need_a_console() -> None:
    """Check that alerts for the console exist only with a console, and are warnings."""
    there = released(RULE, CONSOLE)
    assert "PenstockConsoleGone" in there
    assert {rule["labels"]["severity"] for name, rule in there.items() if "Console" in name} == {"warning"}
    assert 'edge="console"' not in there["PenstockEdgesGone"]["expr"]
    for values in ((CONSOLE, NO_CONSOLE), ()):
        assert [name for name in released(RULE, *values) if "Console" in name] == []


@pytest.mark.parametrize(
    ("values", "is_present"),
    [
        ((), True),
        ((OFF, CONSOLE), True),
        ((OFF,), False),
        ((OFF, CONSOLE, NO_CONSOLE), False),
        ((CONSOLE, NO_CONSOLE), True),
    ],
    ids=["operator", "console", "neither", "console of no pods", "operator, and console of no pods"],
)
def test_queue_and_report_alerts_need_operator_or_console(
    values: tuple[Values, ...], is_present: bool
) -> None:
    found = released(RULE, {"analytics": {"enabled": True}}, *values)
    for alert in ("PenstockDeadLetters", "PenstockAnalyticsStale"):
        assert (alert in found) == is_present, alert
    assert "PenstockEdgesGone" in found
    assert bool([name for name in found if "Operator" in name]) == (OFF not in values)


def test_disk_alert_needs_the_charts_own_store() -> None:
    """Check that the disk alert exists only with the chart's own store, with the name of its claim."""
    own = render(RULE)[f"StatefulSet/{NAME}-redis"]["spec"]["volumeClaimTemplates"]
    assert [f"{claim['metadata']['name']}-{NAME}-redis-0" for claim in own] == [f"data-{NAME}-redis-0"]
    assert "PenstockStoreDiskFillsUp" in released(RULE)
    outside = {"redis": {"enabled": False}, "externalRedis": {"url": "redis://e:e@store:6379/0"}}
    for values in (nested("redis.persistence.enabled", False), outside):
        assert "PenstockStoreDiskFillsUp" not in released(RULE, values)


def test_age_and_fill_alerts_use_the_values() -> None:
    """Check that alerts for age and fill level use the values; that for age is off by default."""
    found = released(RULE)
    assert "PenstockBacklog" not in found
    assert "PenstockQueueFillsUp" in found
    numbers = {"enabled": True, "oldestMessageSeconds": 90, "fullQueuePercent": 5}
    found = released(nested("monitoring.prometheusRule", numbers))
    assert found["PenstockBacklog"]["expr"].endswith(" > 90")
    assert found["PenstockQueueFillsUp"]["expr"].endswith(" > 0.05")
    without = released(RULE, nested("monitoring.prometheusRule.fullQueuePercent", 0))
    assert "PenstockQueueFillsUp" not in without
