"""Strings stay strings and numbers stay numbers from values to objects, independently of their look."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chart.chart import CHART, NAME, Rendered, nested, pod_of, render, together
from tests.chart.switches import EXECUTORS, EXTERNAL, TMQ

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
LARGE = 12345678
OCTAL = "010"  # 8 unless quoted
EVERYTHING = {
    "console": {"enabled": True, "ingress": {"enabled": True, "hosts": ["c.example.org"]}},
    **EXECUTORS,
    "edges": {
        "tmq": {"autoscaling": {"type": "hpa"}, "peersService": True},
        "rqp": {"autoscaling": {"type": "keda"}},
        "ring": {"tls": {"secretName": "c", "listeners": ["clients"]}},
    },
    "edgeDefaults": {
        "autoscaling": {"keda": {"triggers": [{"type": "cron"}]}},
        "service": {"type": "LoadBalancer"},
    },
    "monitoring": {"dashboards": {"enabled": True}, "prometheusRule": {"enabled": True}},
    "tracing": {"endpoint": "http://collector.example:4318"},
}


def _paths(kind: str, schema: Any = SCHEMA, path: str = "") -> Iterator[str]:
    """Return the paths of values that may have any of several types."""
    if name := schema.get("$ref"):
        schema = SCHEMA["definitions"][name.rpartition("/")[2]]
    kinds = schema.get("type", ())
    if (
        kind in ([kinds] if isinstance(kinds, str) else kinds)
        and not {"enum", "pattern", "maximum"} & schema.keys()
    ):
        yield path
    for name, inner in schema.get("properties", {}).items():
        yield from _paths(kind, inner, f"{path}.{name}" if path else name)


def _said(kind: str, value: Any, *without: str) -> Any:
    found = [path for path in _paths(kind) if not any(word in path for word in without)]
    assert len(found) > 15
    return together(*(nested(path, value) for path in found))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    else:
        yield value


def _all(rendered: Rendered) -> list[Any]:
    return list(_leaves(list(rendered.objects.values())))


def test_whole_numbers_stay_whole() -> None:
    maps = {
        "edges": {"tmq": {"env": {"LARGE": LARGE}, "settings": {"max_message_bytes": LARGE}}},
        "console": {"env": {"LARGE": LARGE}},
        "redis": {"config": {"lua-time-limit": LARGE}},
        "analytics": {"sparkConf": {"spark.large": LARGE}},
    }
    found = _all(render(EVERYTHING, _said("integer", LARGE, "drain."), maps))
    assert [leaf for leaf in found if isinstance(leaf, float) or "e+0" in str(leaf)] == []
    assert found.count(LARGE) > 15
    assert found.count(str(LARGE)) == 2
    assert f"--conf=spark.large={LARGE}" in found


@pytest.mark.parametrize("store", [{}, EXTERNAL], ids=["own", "outside"])
def test_texts_like_numbers_stay_texts(store: Any) -> None:
    ours = (
        "externalRedis.existingSecret",
        "externalRedis.tls",
        "redis.auth.adminPassword",
        "redis.auth.edgePassword",
    )
    theirs = ("externalRedis.existingSecret", "redis.auth")  # both a URL and a Secret are rejected
    # equal names of two accounts would clash
    left_out = ("helmTest", "console.serviceAccount", *(theirs if store else ours))
    found = _all(render(EVERYTHING, store, _said("string", OCTAL, *left_out)))
    assert [leaf for leaf in found if leaf == 8] == []
    assert found.count(OCTAL) > 40


def test_releases_and_namespaces_may_be_numbers() -> None:
    for release, namespace in (("123", "456"), ("true", "null"), ("1e3", "0x1f")):
        rendered = render(EVERYTHING, release=release, namespace=namespace)
        for each in rendered.objects.values():
            pod = pod_of(each) or {}
            results = [each["metadata"], pod.get("metadata"), each.get("subjects"), each.get("roleRef")]
            assert {type(leaf) for leaf in _leaves(results) if leaf is not None} == {str}, each["metadata"]


def test_texts_with_yaml_syntax_are_preserved() -> None:
    text = "a: b # c"
    values = {
        "analytics": {"enabled": True, "sparkConf": {"spark.said": text}},
        "edges": {"tmq": {"env": {"SAID": text}}},
        "redis": {"persistence": {"storageClass": text}},
    }
    rendered = render(values)
    assert f"--conf=spark.said={text}" in rendered.container(f"CronJob/{NAME}-analytics")["args"]
    assert rendered.env(TMQ)["SAID"] == text
    assert _claim(rendered)["storageClassName"] == text


def test_volume_without_a_class() -> None:
    assert _claim(render(nested("redis.persistence.storageClass", "-")))["storageClassName"] == ""
    assert "storageClassName" not in _claim(render())


def _claim(rendered: Rendered) -> Any:
    (claim,) = rendered[f"StatefulSet/{NAME}-redis"]["spec"]["volumeClaimTemplates"]
    return claim["spec"]
