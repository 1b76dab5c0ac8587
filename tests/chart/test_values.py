"""values.yaml, values.schema.json and README.md agree, and invalid values are rejected with an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.store.redis.rights import acl_rules
from tests.chart.chart import CHART, FULL, NAME, Values, helm, nested, render
from tools import chart_docs

VALUES = (CHART / "values.yaml").read_text()


def test_readme_is_current() -> None:
    assert (CHART / "README.md").read_text() == chart_docs.page(CHART), "make chart-docs"


def test_edge_acl_matches_the_store() -> None:
    assert (CHART / "files" / "edge.acl").read_text().split() == acl_rules(), "make chart-docs"


def test_every_value_is_documented() -> None:
    """Check that every value is documented, by a comment of its own or of a parent."""
    explained = {value.path for value in chart_docs.values(VALUES)}
    leaves = list(_leaves(yaml.safe_load(VALUES)))
    assert len(leaves) > 200
    missing = [path for path in leaves if not any(up in explained for up in _upwards(path))]
    assert missing == []
    assert explained - {up for path in leaves for up in _upwards(path)} == set()


def _leaves(values: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def _upwards(path: str) -> Iterator[str]:
    """Return the path and all its prefixes."""
    parts = path.split(".")
    yield from (".".join(parts[:length]) for length in range(len(parts), 0, -1))


def test_schema_has_no_unknown_values() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load(VALUES)
    assert list(_unknown(schema, schema, values)) == []


def _unknown(root: Any, schema: Any, value: Any, path: str = "") -> Iterator[str]:
    if name := schema.get("$ref"):
        schema = root["definitions"][name.rpartition("/")[2]]
    for name, inner in schema.get("properties", {}).items():
        if path.endswith("limits."):  # max_input_bytes and another one, with defaults in the edges
            continue
        if f"{path}{name}" == "enabled":  # for a parent chart
            continue
        if isinstance(value, dict) and name in value:
            yield from _unknown(root, inner, value[name], f"{path}{name}.")
        elif not path.endswith("resources."):
            yield f"{path}{name}"


def test_maps_are_closed() -> None:
    """Check that maps are closed, except those of Kubernetes, settings, and names chosen by users."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    opened = set(_open(schema))
    assert opened == {"definitions.kubernetes", "definitions.edge.settings", "console.settings", "global"}


def _open(schema: Any, path: str = "") -> Iterator[str]:
    if schema.get("type") == "object" and "additionalProperties" not in schema:
        yield path
    for name, inner in schema.get("definitions", {}).items():
        yield from _open(inner, f"definitions.{name}")
    for name, inner in schema.get("properties", {}).items():
        yield from _open(inner, f"{path}.{name}" if path else name)


KEDA = {
    "type": "keda",
    "behavior": {"scaleUp": {"stabilizationWindowSeconds": 33}},
    "keda": {
        "serverAddress": "http://prometheus.example:9090",
        "query": 'sum(depth{edge="{{ .edge }}",store="{{ .store }}"})',
        "threshold": "777",
        "activationThreshold": "11",
        "authenticationRef": "prometheus-login",
        "triggers": [{"type": "cron", "metadata": {"timezone": "Europe/Berlin"}}],
    },
}


@pytest.mark.parametrize("values", [FULL, nested("edges.rqp.autoscaling", KEDA)], ids=["full", "keda"])
def test_every_value_has_an_effect(values: Values) -> None:
    """Check that every value has an effect; values that only select something are tested as switches."""
    rendered = json.dumps(list(render(values).objects.values()))
    chosen = {"type", "query"}  # decided by existing objects
    results = [text for path, text in _texts(values) if path.rpartition(".")[2] not in chosen]
    assert len(results) > 4
    assert [text for text in results if text not in rendered] == []


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Return strings, and numbers that are unlikely to occur by chance."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, path)
    elif isinstance(value, str) or (isinstance(value, int) and value > 32):
        yield path, str(value)


def test_keda_query_has_edge_and_namespace() -> None:
    scaled = render(nested("edges.rqp.autoscaling", KEDA))[f"ScaledObject/{NAME}-rqp"]["spec"]
    assert scaled["triggers"][0]["metadata"]["query"] == f'sum(depth{{edge="rqp",store="{NAME}"}})'


def test_package_has_all_files(tmp_path: Path) -> None:
    """Check that .helmignore excludes nothing that templates read."""
    helm(("package", str(CHART), "--destination", str(tmp_path)))
    (packed,) = tmp_path.glob("penstock-*.tgz")
    # passwords would change with each rendering
    sets = ("--set", "redis.auth.existingSecret=kept", "--set", "monitoring.dashboards.enabled=true")
    one, other = (helm(("template", "demo", str(chart), *sets)) for chart in (packed, CHART))
    assert one == other
