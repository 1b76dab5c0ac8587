"""A switch of values.yaml with what exists only if it is on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from tests.chart.chart import AS_INSTALLED, CHART, Rendered, Values, nested, render, together


def _nothing(_: Rendered) -> bool:
    return True


@dataclass(frozen=True)
class Switch:
    """A switch: `objects` exist, and `has` is true, only if it is on.

    beside: other values that it needs; instead: values that are needed if it is off.
    """

    path: str
    objects: tuple[str, ...] = ()
    has: Callable[[Rendered], Any] = _nothing
    on: Any = True
    off: Any = False
    beside: Values = field(default_factory=dict)
    instead: Values = field(default_factory=dict)

    def rendered_on(self) -> Rendered:
        return render(self.beside, self._said(self.on))

    def rendered_off(self) -> Rendered:
        return render(self.beside, self._said(self.off), self.instead)

    def _said(self, value: Any) -> Values:
        """Return {} if the value is the default, so that many switches share one rendering."""
        return {} if _default(self.path) == value else nested(self.path, value)


def _default(path: str) -> Any:
    """Return the default in values.yaml at 'a.b.c', for an edge that of edgeDefaults; None without one."""
    parts = path.split(".")
    ways = [parts, ["edgeDefaults", *parts[2:]]] if parts[0] == "edges" else [parts]
    return next((found for way in ways if (found := _at(way)) is not None), None)


def _at(parts: list[str]) -> Any:
    found: Any = _values()
    for name in parts:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


@cache
def _values() -> Values:
    return together(yaml.safe_load((CHART / "values.yaml").read_text()), AS_INSTALLED)
