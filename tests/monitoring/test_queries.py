"""Results of panels on known series, computed by Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.monitoring.boards import METRIC, Ask, asks, every_board
from tests.monitoring.expected import EAST, all_series, known
from tests.monitoring.reckoning import NOW_S, Known, check, rises, stands
from tests.monitoring.test_table import OF_CONTROL, ROWS
from tools.dashboards.board import RELEASE

WEST = f'namespace="shop",{RELEASE}="west"'

# Computed from two metrics, or from the time.
OF_SEVERAL = (
    Known("edge: Failed requests: {{edge}}", {f'{EAST},edge="tmq"': 0.25}),
    Known("edge: Open files: {{pod}} {{instance}}", {f'{EAST},pod="a",instance="a:1"': 0.125}),
    Known("analytics: Age of the report: report", {EAST: NOW_S - 5000.0}),
)


def test_every_query_computes_the_value_of_its_panel(tmp_path: Path) -> None:
    """Each metric has its own value, so that wrong metrics and sums are found."""
    table = list(known())
    check(tmp_path, dict(all_series()), table)
    there = {ask.called for board in every_board() for ask in asks(board)}
    assert {each.called for each in (*table, *OF_SEVERAL)} == there
    assert len(table) + len(OF_SEVERAL) == len(there)


def test_topk_shows_ten_queues(tmp_path: Path) -> None:
    dead = {number: f'{EAST},queue="q{number}"' for number in range(1, 13)}
    series = {f"penstock_queue_dead_messages{{{labels}}}": stands(number) for number, labels in dead.items()}
    shown = {labels: float(number) for number, labels in dead.items() if number > 2}
    check(tmp_path, series, [Known("dead-letters: By queue: {{queue}}", shown)])


def test_variables_filter_series(tmp_path: Path) -> None:
    """Each query uses all variables of its dashboard that its metric has labels for."""
    unmatched = [
        Known(ask.called, {}, {name: "another's"})
        for board in every_board()
        for ask in asks(board)
        for name in choices(board, ask)
    ]
    assert len(unmatched) > 3 * 120
    check(tmp_path, {**dict(all_series()), **of_several()}, unmatched)


def choices(board: dict[str, Any], ask: Ask) -> set[str]:
    """Check this for metrics of edges, except those that the operator or the console exports."""
    offered = {each["name"] for each in board["templating"]["list"][1:]}
    metrics = [ROWS[name.removesuffix("_bucket")] for name in METRIC.findall(ask.expr)]
    are_of_edges = not any(row.who in OF_CONTROL for row in metrics)
    distinguishing = {label for row in metrics for label in row.labels}
    return offered & {"namespace", "release", *distinguishing, *(("job", "pod") if are_of_edges else ())}


def test_ratios_and_ages_are_computed(tmp_path: Path) -> None:
    check(tmp_path, of_several(), OF_SEVERAL)


def of_several() -> dict[str, str]:
    requests = f'penstock_requests_total{{{EAST},edge="tmq",job="edges",pod="a",operation="ENQ"'
    its = f'{{{EAST},job="edges",pod="a",instance="a:1"}}'
    return {
        f'penstock_ready{{{EAST},edge="tmq",job="edges",pod="a",instance="a:1"}}': stands(1),
        f'{requests},result="failed"}}': rises(1),
        f'{requests},result="ok"}}': rises(3),
        f"process_open_fds{its}": stands(128),
        f"process_max_fds{its}": stands(1024),
        f"penstock_report_time_seconds{its}": stands(5000),
    }


def test_other_processes_are_not_shown(tmp_path: Path) -> None:
    """Other programs export metrics of the same names; and the operator is not an edge."""
    memory, cpu = "process_resident_memory_bytes", "process_cpu_seconds_total"
    its = {pod: f'{EAST},job="{pod}",pod="{pod}",instance="{pod}:1"' for pod in ("tmq", "rqp", "operator")}
    foreign = 'namespace="yard",job="node",pod="node",instance="node:1"'
    series = {
        **{f"{memory}{{{labels}}}": stands(100) for labels in (*its.values(), foreign)},
        **{f"{cpu}{{{labels}}}": rises(2) for labels in (*its.values(), foreign)},
        **{f'penstock_ready{{{its[edge]},edge="{edge}"}}': stands(1) for edge in ("tmq", "rqp")},
        f"penstock_operator_store_up{{{its['operator']}}}": stands(0),
    }
    tmq, rqp, operator = (f'{EAST},pod="{pod}",instance="{pod}:1"' for pod in its)
    legend = "{{pod}} {{instance}}"
    check(
        tmp_path,
        series,
        [
            Known(f"edge: Memory: {legend}", {tmq: 100.0, rqp: 100.0}),
            Known(f"edge: Memory: {legend}", {rqp: 100.0}, {"edge": "rqp"}),
            Known(f"edge: CPU: {legend}", {tmq: 2.0, rqp: 2.0}),
            Known(f"overview: The operator's memory: {legend}", {operator: 100.0}),
            Known(f"overview: The operator's CPU: {legend}", {operator: 2.0}),
        ],
    )


def test_series_without_namespace_are_shown(tmp_path: Path) -> None:
    """As on a laptop; all queries select in the same way (test_boards.py)."""
    ready = 'penstock_ready{edge="tmq",job="penstock",instance="a:1"}'
    check(
        tmp_path,
        {ready: stands(1), 'penstock_queue_dead_messages{job="penstock",queue="orders"}': stands(3)},
        [
            Known("overview: Ready pods: {{edge}}", {'edge="tmq"': 1.0}),
            Known("overview: Dead letters: dead", {"": 3.0}),
        ],
    )


def test_releases_of_a_namespace_are_distinguished(tmp_path: Path) -> None:
    """Each has a store with a queue of the same name; its console reports the same as its operator."""
    queue = "penstock_queue_ready_messages"
    series = {
        f'{queue}{{{EAST},pod="east-operator-0",queue="orders"}}': stands(100),
        f'{queue}{{{EAST},pod="east-console-0",queue="orders"}}': stands(100),
        f'{queue}{{{EAST},pod="east-console-1",queue="_other"}}': stands(100),  # no names
        f'{queue}{{{WEST},pod="west-operator-0",queue="orders"}}': stands(40),
    }
    both = {EAST: 100.0, WEST: 40.0}
    overview, one = "overview: Messages in queues: ready", "queue: Ready: {{queue}}"
    check(
        tmp_path,
        series,
        [
            Known(overview, both),
            Known(overview, {WEST: 40.0}, {"release": "west"}),
            Known(
                one,
                {f'{labels},queue="orders"': value for labels, value in both.items()}
                | {f'{EAST},queue="_other"': 100.0},
            ),
            Known(
                one, {f'{EAST},queue="{name}"': 100.0 for name in ("orders", "_other")}, {"release": "east"}
            ),
        ],
    )


def test_chosen_edge_pod_does_not_hide_other_components(tmp_path: Path) -> None:
    """Queue statistics do not depend on the edge; and links between dashboards keep the variables."""
    operator = f'{EAST},job="operator",pod="east-operator-0"'
    series = {
        f'penstock_ready{{{EAST},job="edges",edge="tmq",pod="east-tmq-0"}}': stands(1),
        f'penstock_ready{{{EAST},job="edges",edge="tmq",pod="east-tmq-1"}}': stands(1),
        f'penstock_queue_dead_messages{{{operator},queue="orders"}}': stands(3),
        f'penstock_operator_resources{{{operator},kind="Queue",reason="Ok"}}': stands(4),
        f"penstock_report_sudden_changes{{{operator}}}": stands(5),
    }
    one = {"pod": "east-tmq-1", "job": "edges"}
    check(
        tmp_path,
        series,
        [
            Known("overview: Ready pods: {{edge}}", {f'{EAST},edge="tmq"': 1.0}, one),
            Known("overview: Dead letters: dead", {EAST: 3.0}, one),
            Known("overview: Resources: {{kind}} {{reason}}", {f'{EAST},kind="Queue",reason="Ok"': 4.0}, one),
            Known("dead-letters: By queue: {{queue}}", {f'{EAST},queue="orders"': 3.0}, one),
            Known("analytics: Sudden changes: report", {EAST: 5.0}, one),
        ],
    )
