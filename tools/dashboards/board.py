"""A dashboard of Grafana, made of panels that say no more than they must."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
ALL = ".*"  # of a label: also series without it, as where somebody scrapes without Kubernetes
COLUMNS = 24
HEIGHT = 8  # of a panel; a row's title is 1 high
RATE = "[$__rate_interval]"

# Two releases of a namespace may have stores of their own, so every query asks for a release and tells which it found.
# A release is what the chart's monitors say of a pod: its label app.kubernetes.io/instance.
RELEASE = "app_kubernetes_io_instance"
OF_RELEASE = f'namespace=~"$namespace",{RELEASE}=~"$release"'

# What queries are written with: `$EDGES` asks for edges, `$CONTROL` for the operator and the console: they are in no
# job or pod of an edge, so what is chosen of these must not hide them. `$WHOSE` is the beginning of every `by`.
WORDS = {
    "$EDGES": f'{OF_RELEASE},job=~"$job",pod=~"$pod"',
    "$CONTROL": OF_RELEASE,
    "$WHOSE": f"namespace, {RELEASE}",
}
ITS = '$EDGES,edge=~"$edge"'  # of the board where one edge is chosen
WHOSE = f"{{{{namespace}}}} {{{{{RELEASE}}}}}"  # the beginning of every legend


@dataclass(frozen=True, slots=True)
class Variable:
    """`query`: as Grafana's label_values."""

    name: str
    label: str
    query: str


@dataclass(frozen=True, slots=True)
class Panel:
    """`asks`: queries and their legends, which need not say whose a series is."""

    title: str
    text: str
    unit: str
    asks: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    width: int = 8

    @classmethod
    def of(cls, title: str, text: str, unit: str, *asks: tuple[str, str], **more: Any) -> Panel:
        return cls(title, text, unit, asks, **more)


@dataclass(frozen=True, slots=True)
class Row:
    """The title of the panels that follow, up to the next."""

    title: str


@dataclass(frozen=True, slots=True)
class Board:
    name: str
    title: str
    text: str
    variables: Sequence[Variable]
    panels: Sequence[Panel | Row]


ALIVE = '__name__=~"penstock_ready|penstock_operator_store_up"'  # edges, or an operator alone
NAMESPACE = Variable("namespace", "Namespace", f"label_values({{{ALIVE}}}, namespace)")
WHICH = Variable("release", "Release", f'label_values({{{ALIVE},namespace=~"$namespace"}}, {RELEASE})')
JOB = Variable("job", "Job of edges", f"label_values(penstock_ready{{{OF_RELEASE}}}, job)")
POD = Variable("pod", "Pod of edges", f'label_values(penstock_ready{{{OF_RELEASE},job=~"$job"}}, pod)')
WHERE = (NAMESPACE, WHICH)
USUAL = (*WHERE, JOB, POD)


def each_second(metric: str, *labels: str, of: str = ITS) -> str:
    """How a counter rises, by these labels."""
    return f"sum by ({', '.join(('$WHOSE', *labels))}) (rate(penstock_{metric}{{{of}}}{RATE}))"


def in_an_hour(metric: str, *labels: str, of: str = ITS) -> str:
    """By how much it rose, by these labels."""
    return f"sum by ({', '.join(('$WHOSE', *labels))}) (increase(penstock_{metric}{{{of}}}[1h]))"


def ours(process: str, told_by: str) -> str:
    """What processes tell that also tell this: Prometheus knows those of others by the same names."""
    return f"{process} and on ($WHOSE, pod, instance) penstock_{told_by}"


def document(board: Board) -> dict[str, Any]:
    return {
        "title": f"Penstock / {board.title}",
        "description": board.text,
        "uid": f"penstock-{board.name}",
        "tags": ["penstock"],
        "editable": True,
        "schemaVersion": 39,
        "version": 1,
        "timezone": "",
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "graphTooltip": 1,
        "links": [
            {
                "title": "Penstock",
                "type": "dashboards",
                "tags": ["penstock"],
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "templating": {"list": [_datasource(), *map(_variable, board.variables)]},
        "panels": _panels(board.panels),
    }


def _datasource() -> dict[str, Any]:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
    }


def _variable(one: Variable) -> dict[str, Any]:
    return {
        "name": one.name,
        "label": one.label,
        "type": "query",
        "datasource": PROMETHEUS,
        "query": {"query": one.query, "refId": "V"},
        "definition": one.query,
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ALL,
        "current": {"text": "All", "value": "$__all"},
        "sort": 1,
    }


def _panels(panels: Sequence[Panel | Row]) -> list[dict[str, Any]]:
    """From left to right, as many beside each other as there is room for; a row's title ends a line."""
    found, x, y = [], 0, 0
    for number, panel in enumerate(panels, 1):
        if isinstance(panel, Row):
            y = y + HEIGHT if x else y
            found.append(_row(panel, number, y))
            x, y = 0, y + 1
            continue
        if x + panel.width > COLUMNS:
            x, y = 0, y + HEIGHT
        found.append(_panel(panel, number, {"h": HEIGHT, "w": panel.width, "x": x, "y": y}))
        x += panel.width
    return found


def _row(row: Row, number: int, y: int) -> dict[str, Any]:
    place = {"h": 1, "w": COLUMNS, "x": 0, "y": y}
    return {
        "id": number,
        "type": "row",
        "title": row.title,
        "collapsed": False,
        "gridPos": place,
        "panels": [],
    }


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": PROMETHEUS,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {
                "expr": _filled(ask),
                "legendFormat": f"{WHOSE} {legend}",
                "datasource": PROMETHEUS,
                "refId": chr(65 + at),
            }
            for at, (ask, legend) in enumerate(panel.asks)
        ],
    }


def _filled(ask: str) -> str:
    for word, meaning in WORDS.items():
        ask = ask.replace(word, meaning)
    return ask


def in_all(metric: str, of: str) -> str:
    """Of all queues together, as each process finds them: another may call the same queues by other names."""
    return f"max by ($WHOSE) (sum by ($WHOSE, pod, instance) ({metric}{{{of}}}))"
