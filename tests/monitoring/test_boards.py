"""Texts and queries of dashboards without a Prometheus: legends, variables, exclusions."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.chart.chart import CHART
from tests.monitoring.boards import FILES, METRIC, VARIABLE, WHOSE, asks, every_board, panels
from tools.dashboards.__main__ import BOARDS, text
from tools.dashboards.board import Board
from tools.metrics_docs import rows

UNITS = {"short", "reqps", "s", "Bps", "bytes", "percentunit", "cps", "mps"}
LEFT_OUT = {  # and why
    "penstock_operator_queue_depth": "for scaling; ready and in flight, of every queue, are shown",
    "process_virtual_memory_bytes": "what is resident counts",
    "python_gc_collections_total": "of developers",
    "python_gc_objects_collected_total": "of developers",
    "python_gc_objects_uncollectable_total": "of developers",
    "python_info": "of developers",
}
SUMS = re.compile(r"\b(?:sum|max|min) ?(?:by)?\s?\(")  # aggregations


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def board(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(request.param.read_text())
    return found


@pytest.mark.parametrize("one", BOARDS, ids=lambda one: one.name)
def test_files_are_current(one: Board) -> None:
    """Otherwise run `make chart-docs`."""
    assert (CHART / "files" / "dashboards" / f"{one.name}.json").read_text() == text(one)
    assert {path.stem for path in FILES} == {each.name for each in BOARDS}


def test_panels_have_descriptions(board: dict[str, Any]) -> None:
    assert len({panel["title"] for panel in board["panels"]}) == len(board["panels"])
    assert board["description"]
    for panel in panels(board):
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        legends = [target["legendFormat"] for target in panel["targets"]]
        assert len(set(legends)) == len(legends) > 0, panel["title"]


def test_panels_do_not_overlap(board: dict[str, Any]) -> None:
    """No two have the same place."""
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        squares = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not squares & taken
        taken |= squares


def test_variables_are_used(board: dict[str, Any]) -> None:
    """Each is used, and depends on those before it."""
    variables = [each["name"] for each in board["templating"]["list"]]
    of_edges = [] if board["title"].endswith("Analytics") else ["job", "pod"]  # does not contain the operator
    assert variables[: 3 + len(of_edges)] == ["datasource", "namespace", "release", *of_edges]
    used = {name for ask in asks(board) for name, _ in VARIABLE.findall(ask.expr)}
    assert used - {"__rate_interval"} == set(variables) - {"datasource"}
    for each in board["templating"]["list"][1:]:
        assert each["allValue"] == ".*"  # also without a namespace label, as on a laptop
        known = {name for name, _ in VARIABLE.findall(each["definition"])}
        assert known == {
            "namespace": set(),
            "release": {"namespace"},
            "pod": {"namespace", "release", "job"},
        }.get(each["name"], {"namespace", "release"})
    for ask in asks(board):
        assert set(re.findall(r"\[([^\]]*)\]", ask.expr)) <= {"$__rate_interval", "1h"}


def test_every_query_selects_and_shows_the_release(board: dict[str, Any]) -> None:
    """Each selector, each `by`, each legend."""
    whose = "by (namespace, app_kubernetes_io_instance"
    for ask in asks(board):
        asked = re.findall(r"\{([^}]*)\}", ask.expr)
        assert asked
        for selector in asked:
            assert 'namespace=~"$namespace",app_kubernetes_io_instance=~"$release"' in selector, ask
        assert len(SUMS.findall(ask.expr)) == ask.expr.count(whose) > 0, ask
        assert ask.legend.startswith(WHOSE), ask


def test_every_metric_has_a_panel_or_an_alert() -> None:
    """Except those left out on purpose."""
    shown = {name for board in every_board() for ask in asks(board) for name in METRIC.findall(ask.expr)}
    shown |= set(METRIC.findall((CHART / "files/rules/alerts.yaml").read_text()))
    there = {row.measure.name for row in rows()}
    assert {name.removesuffix("_bucket") for name in shown} - there == set()
    assert there - {name.removesuffix("_bucket") for name in shown} == set(LEFT_OUT)


def test_row_titles_precede_panels() -> None:
    """Alone in a line, and never last."""
    rows_of = {
        board["title"]: [each for each in board["panels"] if each["type"] == "row"] for board in every_board()
    }
    assert {row["title"] for row in rows_of["Penstock / Overview"]} == {"Operator", "Console"}
    assert {row["title"] for row in rows_of["Penstock / Edge"]} >= {"RQP", "Ring", "Ring, in detail"}
    for board in every_board():
        for row in rows_of[board["title"]]:
            under = board["panels"][board["panels"].index(row) + 1]
            assert (row["gridPos"]["w"], row["gridPos"]["h"], row["panels"]) == (24, 1, [])
            assert under["gridPos"]["y"] == row["gridPos"]["y"] + 1
            assert under["type"] != "row"
