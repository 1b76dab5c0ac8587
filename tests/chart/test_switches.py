"""Every switch of the chart, on and off; Kubernetes accepts every resulting object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.chart.chart import CHART, Object, render
from tests.chart.switch import Switch
from tests.chart.switches import EXECUTORS, SWITCHES, renderings
from tests.kubernetes.cluster import Cluster, CommandFailed

FOREIGN = {  # kinds of other operators, with their required fields
    "PodMonitor": ("selector", "podMetricsEndpoints"),
    "ServiceMonitor": ("selector", "endpoints"),
    "PrometheusRule": ("groups",),
    "ScaledObject": ("scaleTargetRef", "triggers"),
    "ScheduledSparkApplication": ("schedule", "template"),
}


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.path)
def test_switches(switch: Switch) -> None:
    on, off = switch.rendered_on(), switch.rendered_off()
    assert [place for place in switch.objects if place not in on] == []
    assert [place for place in switch.objects if place in off] == []
    assert switch.has(on)
    if not switch.objects:
        assert not switch.has(off)


def test_every_switch_is_tested() -> None:
    """Check that each boolean in values.yaml is tested; an edge's own counts as the default of all edges."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    found = {_of_any_edge(path) for path in _switches(values)}
    assert found - {_of_any_edge(switch.path) for switch in SWITCHES} == set()


def _switches(values: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _switches(value, f"{path}{name}.")
        elif isinstance(value, bool):
            yield f"{path}{name}"


def _of_any_edge(path: str) -> str:
    parts = path.split(".")
    if parts[:1] == ["edgeDefaults"]:
        parts = ["edges", "*", *parts[1:]]
    if parts[0] == "edges":
        parts[1] = "*"
        if parts[2] == "ports":
            parts[3] = "*"
    return ".".join(parts)


@pytest.fixture(scope="module")
def objects() -> list[Object]:
    """Return all distinct objects."""
    found = {
        json.dumps(each, sort_keys=True): each for some in renderings() for each in some.objects.values()
    }
    return list(found.values())


def test_objects_are_valid_for_the_oldest_supported_kubernetes(
    objects: list[Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    promised = yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"]
    minor = promised.removeprefix(">=").removesuffix(".0-0")
    read_once = lru_cache(kubernetes_validate.utils.schema_contents)  # a megabyte each
    monkeypatch.setattr(kubernetes_validate.utils, "schema_contents", read_once)
    for each in objects:
        if each["kind"] not in FOREIGN:
            kubernetes_validate.validate(each, minor, strict=True)


def test_current_api_server_accepts_every_object(
    objects: list[Object], cluster: Cluster, namespace: str
) -> None:
    """Check each object by a dry run; helm's own --dry-run=server sends nothing."""
    _try(cluster, namespace, [each for each in objects if each["kind"] not in FOREIGN])
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "theirs"}}
    wrong = {**service, "spec": {"clusterIP": "nonsense", "ports": [{"port": 80}]}}
    with pytest.raises(CommandFailed, match=r"nonsense.*must be a valid IP address"):
        _try(cluster, namespace, [wrong])


def _try(cluster: Cluster, namespace: str, objects: list[Object]) -> None:
    """Apply the objects as a dry run. Raises CommandFailed if one is rejected."""
    for each in objects:
        if "namespace" in each["metadata"]:  # including the watched one
            each["metadata"]["namespace"] = namespace
    flags = ("--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts")
    cluster.apply(objects, "--namespace", namespace, *flags)


def test_objects_for_other_operators_are_complete(objects: list[Object]) -> None:
    foreign = [each for each in objects if each["kind"] in FOREIGN]
    assert {each["kind"] for each in foreign} == set(FOREIGN)
    for each in foreign:
        assert [name for name in FOREIGN[each["kind"]] if not each["spec"].get(name)] == []


def test_pods_are_restricted_and_have_tokens_only_if_needed() -> None:
    used = set()
    everything = render({"console": {"enabled": True}, **EXECUTORS})
    for place, pod in everything.pods():
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True, place
        assert spec["securityContext"]["runAsUser"] == 10001, place
        assert spec["enableServiceLinks"] is False, place
        if spec["automountServiceAccountToken"]:
            used.add(place.rpartition("-")[2])
        for container in spec["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True, place
            assert security["capabilities"] == {"drop": ["ALL"]}, place
            assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]], place
    assert used == {"operator", "uninstall", "analytics"}


def test_security_contexts_override_the_charts() -> None:
    fields = {
        "podSecurityContext": {"runAsUser": None, "fsGroup": 5},
        "containerSecurityContext": {"privileged": False},
    }
    for place, pod in render(fields).pods():
        assert "runAsUser" not in pod["spec"]["securityContext"], place
        assert pod["spec"]["securityContext"]["fsGroup"] == 5, place
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, place
        for container in pod["spec"]["containers"]:
            assert container["securityContext"]["privileged"] is False, place
            assert container["securityContext"]["readOnlyRootFilesystem"] is True, place
