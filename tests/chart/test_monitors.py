"""Prometheus scrapes every process once, and Grafana finds the dashboards."""

from __future__ import annotations

import json

import pytest

from tests.chart.chart import CHART, NAME, RELEASE, nested, render
from tests.chart.console import CONSOLE
from tests.chart.flows import selects

DASHBOARDS = CHART / "files" / "dashboards"
INSTANCE = "app.kubernetes.io/instance"  # the dashboards use it


def test_every_pod_is_scraped_once() -> None:
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
        assert selects(wanted, labels) == ("health" in ports), place
        assert not selects(wanted, labels) or labels[INSTANCE] == RELEASE
    (expression,) = wanted["matchExpressions"]
    assert expression["values"] == ["pubsub", "ring", "rqp", "tmq", "operator", "console"]


@pytest.mark.parametrize("kind", ["ClusterIP", "NodePort", "LoadBalancer"])
def test_service_monitor_covers_every_pod_once(kind: str) -> None:
    """Check that each pod of edges, operator and console is scraped once, never from outside."""
    rendered = render(
        CONSOLE,
        nested("monitoring.serviceMonitor.enabled", True),
        nested("edgeDefaults.service.type", kind),
        nested("console.service.type", kind),
    )
    monitor = rendered[f"ServiceMonitor/{NAME}"]["spec"]
    assert INSTANCE in monitor["targetLabels"]
    wanted = monitor["selector"]  # also by the label with that name
    led = [
        each["spec"]["selector"]["app.kubernetes.io/component"]
        for each in rendered.of("Service")
        if selects(wanted, each["metadata"]["labels"])
        and "health" in [port["name"] for port in each["spec"]["ports"]]
    ]
    assert sorted(led) == ["console", "operator", "pubsub", "ring", "rqp", "tmq"]
    for each in rendered.of("Service"):
        if "health" in [port["name"] for port in each["spec"]["ports"]]:
            assert each["spec"].get("type", "ClusterIP") == "ClusterIP"


def test_no_second_service_without_a_service_monitor() -> None:
    rendered = render(nested("edgeDefaults.service.type", "NodePort"))
    assert f"Service/{NAME}-tmq-health" not in rendered


def test_sidecar_finds_the_dashboards() -> None:
    found = render(nested("monitoring.dashboards.enabled", True))[f"ConfigMap/{NAME}-dashboards"]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    files = {f"penstock-{path.name}": json.loads(path.read_text()) for path in DASHBOARDS.glob("*.json")}
    assert len(files) == 5
    assert {name: json.loads(text) for name, text in found["data"].items()} == files
