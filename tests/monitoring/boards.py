"""The chart's dashboards as Grafana would use them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.chart.chart import CHART
from tools.dashboards.board import RELEASE

FILES = sorted((CHART / "files" / "dashboards").glob("*.json"))
RATE_INTERVAL = "10s"  # Grafana's value for scrapes each second, increased
VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")
METRIC = re.compile(r"\b(?:penstock|process|python)_[a-z_]+\b(?=\{)")
LEGEND = re.compile(r"\{\{(\w+)\}\}")
WHOSE = f"{{{{namespace}}}} {{{{{RELEASE}}}}} "  # the prefix of every legend

Document = dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """One query of a panel."""

    board: str
    title: str
    expr: str
    legend: str

    @property
    def called(self) -> str:
        """Board, panel and legend without the prefix; unique."""
        return f"{self.board}: {self.title}: {self.legend.removeprefix(WHOSE)}"


def load(name: str) -> Document:
    found: Document = json.loads((CHART / "files" / "dashboards" / f"{name}.json").read_text())
    return found


def every_board() -> list[Document]:
    return [load(path.stem) for path in FILES]


def panels(board: Document) -> list[Document]:
    """Return the panels, without titles of rows."""
    return [each for each in board["panels"] if each["type"] != "row"]


def asks(board: Document) -> Iterator[Ask]:
    name = board["uid"].removeprefix("penstock-")
    for panel in panels(board):
        for target in panel["targets"]:
            yield Ask(name, panel["title"], target["expr"], target["legendFormat"])


def everything(board: Document) -> dict[str, str]:
    """Return the variables with nothing selected."""
    return {each["name"]: each["allValue"] for each in board["templating"]["list"][1:]}


def filled(text: str, chosen: dict[str, str]) -> str:
    """Fill in variables as Grafana does, with its interval of rates."""
    values = {"__rate_interval": RATE_INTERVAL, **chosen}
    return VARIABLE.sub(lambda found: values[found[1] or found[2]], text)


def named(legend: str, labels: dict[str, str]) -> str:
    return LEGEND.sub(lambda name: labels.get(name[1], ""), legend).strip()
