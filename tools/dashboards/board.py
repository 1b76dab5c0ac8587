"""Build a Grafana dashboard from short descriptions of its panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
ALL = ".*"  # matches series without the label, too, such as those scraped outside Kubernetes
COLUMNS = 24
HEIGHT = 8  # height of a panel; a row's title has height 1
RATE = "[$__rate_interval]"

# Releases in one namespace may use different stores, so that every query selects and shows the release: the pod label
# app.kubernetes.io/instance, as added by the chart's monitors.
RELEASE = "app_kubernetes_io_instance"
OF_RELEASE = f'namespace=~"$namespace",{RELEASE}=~"$release"'

# Placeholders in queries: `$EDGES` selects edges, `$CONTROL` the operator and the console, to which the choice of an
# edge's job or pod must not apply. `$WHOSE` begins every `by`.
WORDS = {
    "$EDGES": f'{OF_RELEASE},job=~"$job",pod=~"$pod"',
    "$CONTROL": OF_RELEASE,
    "$WHOSE": f"namespace, {RELEASE}",
}
ITS = '$EDGES,edge=~"$edge"'  # on the dashboard with the variable `edge`
WHOSE = f"{{{{namespace}}}} {{{{{RELEASE}}}}}"  # begins every legend


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the dashboard. query: Grafana's label_values."""

    name: str
    label: str
    query: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel. asks: queries with legends; namespace and release are added to them."""

    title: str
    text: str
    unit: str
    asks: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    width: int = 8

    @classmethod
    def of(cls, title: str, text: str, unit: str, *asks: tuple[str, str], **more: Any) -> Panel:
        """Create a panel with any number of queries."""
        return cls(title, text, unit, asks, **more)


@dataclass(frozen=True, slots=True)
class Row:
    """A title above the panels that follow."""

    title: str


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard."""

    name: str
    title: str
    text: str
    variables: Sequence[Variable]
    panels: Sequence[Panel | Row]


ALIVE = '__name__=~"penstock_ready|penstock_operator_store_up"'  # edges, or only an operator
NAMESPACE = Variable("namespace", "Namespace", f"label_values({{{ALIVE}}}, namespace)")
WHICH = Variable("release", "Release", f'label_values({{{ALIVE},namespace=~"$namespace"}}, {RELEASE})')
JOB = Variable("job", "Job of edges", f"label_values(penstock_ready{{{OF_RELEASE}}}, job)")
POD = Variable("pod", "Pod of edges", f'label_values(penstock_ready{{{OF_RELEASE},job=~"$job"}}, pod)')
WHERE = (NAMESPACE, WHICH)
USUAL = (*WHERE, JOB, POD)


def each_second(metric: str, *labels: str, of: str = ITS) -> str:
    """Return the query for the rate of a counter by these labels."""
    return f"sum by ({', '.join(('$WHOSE', *labels))}) (rate(penstock_{metric}{{{of}}}{RATE}))"


def in_an_hour(metric: str, *labels: str, of: str = ITS) -> str:
    """Return the query for the increase of a counter in the last hour by these labels."""
    return f"sum by ({', '.join(('$WHOSE', *labels))}) (increase(penstock_{metric}{{{of}}}[1h]))"


def ours(process: str, exported_by: str) -> str:
    """Restrict a process metric to processes that also export this one: other programs use the same names."""
    return f"{process} and on ($WHOSE, pod, instance) penstock_{exported_by}"


def document(board: Board) -> dict[str, Any]:
    """Return the dashboard as Grafana's JSON."""
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
    """Place the panels from left to right in lines; a row's title starts a new line."""
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
    """Return the query for the sum over all queues, summed per process: processes may name different queues."""
    return f"max by ($WHOSE) (sum by ($WHOSE, pod, instance) ({metric}{{{of}}}))"
