"""A section of the values without content, as `redis:`, is rejected with an error or treated as empty."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.chart.chart import CHART, FULL, Refused, nested, render, together

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
OF_ALL_EDGES = SCHEMA["allOf"][0]["properties"]["edgeDefaults"]["required"]
REFUSED_OTHERWISE = ("edges.", "analytics.output")  # with their own error messages


def required(schema: Any = SCHEMA, path: str = "") -> Iterator[str]:
    """Return the keys that must not be removed."""
    yield from (f"{path}{name}" for name in schema.get("required", ()))
    for name, inner in schema.get("properties", {}).items():
        yield from required(inner, f"{path}{name}.")


REQUIRED = {*required(), *(f"edgeDefaults.{name}" for name in OF_ALL_EDGES)}


def parts(values: dict[str, Any] = VALUES, path: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield f"{path}{name}"
            yield from parts(value, f"{path}{name}.")


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_required_parts_are_reported(depth: int) -> None:
    paths = [path for path in REQUIRED if path.count(".") == depth]
    assert paths
    with pytest.raises(Refused) as refused:
        render(together(*(nested(path, None) for path in paths)))
    assert "nil pointer" not in str(refused.value)
    assert [path for path in paths if f"'{path.rpartition('.')[2]}'" not in str(refused.value)] == []


@pytest.mark.parametrize("base", [{}, FULL], ids=["plain", "full"])
def test_other_parts_may_be_null(base: dict[str, Any]) -> None:
    """Check that other parts may be null, all together, which is as good as one by one and faster."""
    others = [path for path in parts() if path not in REQUIRED and not path.startswith(REFUSED_OTHERWISE)]
    assert len(others) > 20
    assert render(base, *(nested(path, None) for path in others)).of("Deployment")
