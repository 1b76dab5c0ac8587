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
RATE_INTERVAL = "10s"  # what Grafana makes of scrapes each second, some more
VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")
METRIC = re.compile(r"\b(?:penstock|process|python)_[a-z_]+\b(?=\{)")
LEGEND = re.compile(r"\{\{(\w+)\}\}")
WHOSE = f"{{{{namespace}}}} {{{{{RELEASE}}}}} "  # every legend begins so

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
        """Board, panel and legend without whose a series is: no two have the same."""
        return f"{self.board}: {self.title}: {self.legend.removeprefix(WHOSE)}"


def load(name: str) -> Document:
    found: Document = json.loads((CHART / "files" / "dashboards" / f"{name}.json").read_text())
    return found


def every_board() -> list[Document]:
    return [load(path.stem) for path in FILES]


def panels(board: Document) -> list[Document]:
    """Without the titles of rows."""
    return [each for each in board["panels"] if each["type"] != "row"]


def asks(board: Document) -> Iterator[Ask]:
    name = board["uid"].removeprefix("penstock-")
    for panel in panels(board):
        for target in panel["targets"]:
            yield Ask(name, panel["title"], target["expr"], target["legendFormat"])


def everything(board: Document) -> dict[str, str]:
    """What variables are where nothing is chosen."""
    return {each["name"]: each["allValue"] for each in board["templating"]["list"][1:]}


def filled(text: str, chosen: dict[str, str]) -> str:
    """As Grafana does, which sets the interval of rates by itself."""
    values = {"__rate_interval": RATE_INTERVAL, **chosen}
    return VARIABLE.sub(lambda found: values[found[1] or found[2]], text)


def named(legend: str, labels: dict[str, str]) -> str:
    return LEGEND.sub(lambda name: labels.get(name[1], ""), legend).strip()
