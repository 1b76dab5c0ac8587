"""What panels make of series that are known, as Prometheus itself reckons: promtool's unit tests, without processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.monitoring.boards import asks, every_board, everything, filled
from tools.dashboards.board import RELEASE
from tools.kubernetes.programs import find

EAST = f'namespace="shop",{RELEASE}="east"'
WEST = f'namespace="shop",{RELEASE}="west"'


@dataclass(frozen=True)
class Known:
    """A query by `Ask.called`, what is chosen, and the series that it must find: no more and no fewer."""

    called: str
    found: Mapping[str, float]  # by labels
    chosen: Mapping[str, str]


def check(folder: Path, series: Mapping[str, str], known: Iterable[Known]) -> None:
    """series: their values in promtool's notation, one every second."""
    exprs = {ask.called: (ask.expr, everything(board)) for board in every_board() for ask in asks(board)}
    tests: list[dict[str, Any]] = []
    for each in known:
        expr, anything = exprs[each.called]
        samples = [{"labels": f"{{{labels}}}", "value": value} for labels, value in each.found.items()]
        wanted = filled(expr, {**anything, **each.chosen})
        tests.append({"expr": wanted, "eval_time": "60s", "exp_samples": samples})
    one = {
        "interval": "1s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": tests,
    }
    (folder / "test.yaml").write_text(yaml.safe_dump({"tests": [one]}))
    words = [find("promtool"), "test", "rules", "test.yaml"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_releases_of_a_namespace_are_told_apart(tmp_path: Path) -> None:
    """Each has a store of its own, with a queue of the same name; the console of one sees the same as its operator."""
    queue = "penstock_queue_ready_messages"
    series = {
        f'{queue}{{{EAST},pod="east-operator-0",queue="orders"}}': "100x60",
        f'{queue}{{{EAST},pod="east-console-0",queue="orders"}}': "100x60",
        f'{queue}{{{WEST},pod="west-operator-0",queue="orders"}}': "40x60",
    }
    both = {EAST: 100.0, WEST: 40.0}
    overview, one = "overview: Messages in queues: ready", "queue: Ready: {{queue}}"
    named = {f'{labels},queue="orders"': value for labels, value in both.items()}
    check(
        tmp_path,
        series,
        [
            Known(overview, both, {}),
            Known(overview, {WEST: 40.0}, {"release": "west"}),
            Known(one, named, {}),
            Known(one, {f'{EAST},queue="orders"': 100.0}, {"release": "east"}),
        ],
    )


def test_a_chosen_pod_of_an_edge_hides_no_other_kind_of_pod(tmp_path: Path) -> None:
    """Queues stand as they stand, whichever edge somebody looks at; and the links of boards carry the choice on."""
    series = {
        f'penstock_ready{{{EAST},job="edges",edge="tmq",pod="east-tmq-0"}}': "1x60",
        f'penstock_ready{{{EAST},job="edges",edge="tmq",pod="east-tmq-1"}}': "1x60",
        f'penstock_queue_dead_messages{{{EAST},job="operator",pod="east-operator-0",queue="orders"}}': "3x60",
        f'penstock_operator_resources{{{EAST},job="operator",pod="east-operator-0",kind="Queue",reason="Ok"}}': "4x60",
        f'penstock_operator_report_sudden_changes{{{EAST},job="operator",pod="east-operator-0"}}': "5x60",
    }
    one = {"pod": "east-tmq-1", "job": "edges"}
    check(
        tmp_path,
        series,
        [
            Known("overview: Pods that take requests: {{edge}}", {f'{EAST},edge="tmq"': 1.0}, one),
            Known("overview: Dead letters: dead", {EAST: 3.0}, one),
            Known("overview: Resources: {{kind}} {{reason}}", {f'{EAST},kind="Queue",reason="Ok"': 4.0}, one),
            Known("dead-letters: By queue: {{queue}}", {f'{EAST},queue="orders"': 3.0}, one),
            Known("analytics: Sudden changes: report", {EAST: 5.0}, one),
        ],
    )
