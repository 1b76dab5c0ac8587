"""What a switch of values.yaml is, to a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.chart.chart import Rendered, Values, nested, together


def _nothing(_: Rendered) -> bool:
    return True


@dataclass(frozen=True)
class Switch:
    """`objects` are there only when it is on, `has` is true only then. `beside`: other values that it needs;
    `instead`: what is needed when it is off.
    """

    path: str
    objects: tuple[str, ...] = ()
    has: Callable[[Rendered], Any] = _nothing
    on: Any = True
    off: Any = False
    beside: Values = field(default_factory=dict)
    instead: Values = field(default_factory=dict)

    @property
    def values_on(self) -> Values:
        return nested(self.path, self.on)

    @property
    def values_off(self) -> Values:
        return together(nested(self.path, self.off), self.instead)
