"""What panels make of series that are known, as Prometheus itself reckons: promtool's unit tests, without processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from services.kit.measure import Kind
from tests.monitoring.boards import LEGEND, asks, every_board, everything, filled
from tools.dashboards.board import RELEASE
from tools.kubernetes.programs import find
from tools.metrics_docs import Row, rows

EAST = f'namespace="shop",{RELEASE}="east"'
WEST = f'namespace="shop",{RELEASE}="west"'
TABLE = Path(__file__).with_name("panels.yaml")
MINUTES = 120  # a sample each, and then somebody looks
NOW_S = MINUTES * 60
PODS = {"a": 1, "b": 10}  # and how much more than the first each tells


@dataclass(frozen=True)
class Known:
    """A query by `Ask.called`, the series that it must find, no more and no fewer, and what is chosen."""

    called: str
    found: Mapping[str, float]  # by labels
    chosen: Mapping[str, str] = field(default_factory=dict)


# What is reckoned of two metrics, or of the time.
OF_SEVERAL = (
    Known("edge: Failed requests: {{edge}}", {f'{EAST},edge="tmq"': 0.25}),
    Known("edge: Open files: {{pod}} {{instance}}", {f'{EAST},pod="a",instance="a:1"': 0.125}),
    Known("analytics: Age of the report: report", {EAST: NOW_S - 5000.0}),
)


def check(folder: Path, series: Mapping[str, str], known: Iterable[Known]) -> None:
    """series: their values in promtool's notation, one every minute."""
    exprs = {ask.called: (ask.expr, everything(board)) for board in every_board() for ask in asks(board)}
    tests: list[dict[str, Any]] = []
    for each in known:
        expr, anything = exprs[each.called]
        samples = [{"labels": f"{{{labels}}}", "value": value} for labels, value in each.found.items()]
        wanted = filled(expr, {"__rate_interval": "5m", **anything, **each.chosen})
        tests.append({"expr": f"round({wanted}, 0.001)", "eval_time": f"{NOW_S}s", "exp_samples": samples})
    one = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": tests,
    }
    (folder / "test.yaml").write_text(yaml.safe_dump({"tests": [one]}))
    words = [find("promtool"), "test", "rules", "test.yaml"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def stays(value: float) -> str:
    return f"{value}x{MINUTES}"


def rises(a_second: float) -> str:
    return f"0+{a_second * 60}x{MINUTES}"


def known() -> Iterator[Known]:
    """As the table says. Every metric has a number of its own."""
    numbers = {row.measure.name: 1000 + at for at, row in enumerate(rows())}
    for board, titles in yaml.safe_load(TABLE.read_text()).items():
        for title, legends in titles.items():
            for legend, words in legends.items():
                how, metric, of = words.split(maxsplit=2)
                shown = {pod: more * numbers[metric] for pod, more in PODS.items()}
                labels = LEGEND.findall(legend)
                if how == "each":
                    found = {_labels(labels, pod): float(value) for pod, value in shown.items()}
                elif of in QUANTILES:  # both pods tell the same of it
                    found = {_labels(labels): numbers[metric] + QUANTILES[of]}
                else:
                    found = {_labels(labels): float(TOGETHER[how](shown.values()))}
                scale = 3600 if of == "in an hour" else 1
                yield Known(f"{board}: {title}: {legend}", {at: n * scale for at, n in found.items()})


TOGETHER = {"sum": sum, "most": max, "least": min}
QUANTILES = {"half": 0.5, "99 of 100": 0.99}  # of what is between a metric's number and the next


def _labels(names: Iterable[str], pod: str = "") -> str:
    """Whose it is, and these: a pod's, or as every series has them."""
    of_pod = {"pod": pod, "instance": f"{pod}:1"}
    return ",".join([EAST, *(f'{name}="{of_pod.get(name, f"its {name}")}"' for name in names)])


def told(row: Row, number: int) -> Iterator[tuple[str, str]]:
    """By two pods."""
    for pod, more in PODS.items():
        own = [
            "exported_namespace" if name == "namespace" else name for name in row.labels
        ]  # as a scrape does
        labels = _labels([*own, "job", "pod", "instance"], pod)
        name = row.measure.name
        if row.measure.kind is Kind.HISTOGRAM:
            for le, count in ((f"{number}", 0), (f"{number + 1}", more), ("+Inf", more)):
                yield f'{name}_bucket{{{labels},le="{le}"}}', rises(count)
        else:
            change = rises if row.measure.kind is Kind.COUNTER else stays
            yield f"{name}{{{labels}}}", change(more * number)


def test_every_query_shows_what_its_panel_says(tmp_path: Path) -> None:
    """No metric has the number of another, so one that asks for the wrong one, or adds up wrongly, is found."""
    series = dict(one for at, row in enumerate(rows()) for one in told(row, 1000 + at))
    table = list(known())
    check(tmp_path, series, table)
    there = {ask.called for board in every_board() for ask in asks(board)}
    assert {each.called for each in (*table, *OF_SEVERAL)} == there
    assert len(table) + len(OF_SEVERAL) == len(there)


def test_parts_and_ages_are_reckoned(tmp_path: Path) -> None:
    requests = f'penstock_requests_total{{{EAST},edge="tmq",job="edges",pod="a",operation="ENQ"'
    its = f'{{{EAST},job="edges",pod="a",instance="a:1"}}'
    series = {
        f'penstock_ready{{{EAST},edge="tmq",job="edges",pod="a",instance="a:1"}}': stays(1),
        f'{requests},result="failed"}}': rises(1),
        f'{requests},result="ok"}}': rises(3),
        f"process_open_fds{its}": stays(128),
        f"process_max_fds{its}": stays(1024),
        f"penstock_report_time_seconds{its}": stays(5000),
    }
    check(tmp_path, series, OF_SEVERAL)


def test_processes_of_others_are_not_shown(tmp_path: Path) -> None:
    """Whatever Prometheus scrapes tells metrics of these names; and the operator is no edge."""
    memory, cpu = "process_resident_memory_bytes", "process_cpu_seconds_total"
    its = {pod: f'{EAST},job="{pod}",pod="{pod}",instance="{pod}:1"' for pod in ("tmq", "rqp", "operator")}
    foreign = 'namespace="yard",job="node",pod="node",instance="node:1"'
    series = {
        **{f"{memory}{{{labels}}}": stays(100) for labels in (*its.values(), foreign)},
        **{f"{cpu}{{{labels}}}": rises(2) for labels in (*its.values(), foreign)},
        **{f'penstock_ready{{{its[edge]},edge="{edge}"}}': stays(1) for edge in ("tmq", "rqp")},
        f"penstock_operator_store_up{{{its['operator']}}}": stays(0),
    }
    tmq, rqp, operator = (f'{EAST},pod="{pod}",instance="{pod}:1"' for pod in its)
    legend = "{{pod}} {{instance}}"
    check(
        tmp_path,
        series,
        [
            Known(f"edge: Memory: {legend}", {tmq: 100.0, rqp: 100.0}),
            Known(f"edge: Memory: {legend}", {rqp: 100.0}, {"edge": "rqp"}),
            Known(f"edge: Processor time: {legend}", {tmq: 2.0, rqp: 2.0}),
            Known(f"overview: The operator's memory: {legend}", {operator: 100.0}),
            Known(f"overview: The operator's processor time: {legend}", {operator: 2.0}),
        ],
    )


def test_releases_of_a_namespace_are_told_apart(tmp_path: Path) -> None:
    """Each has a store of its own, with a queue of the same name; the console of one sees the same as its operator."""
    queue = "penstock_queue_ready_messages"
    series = {
        f'{queue}{{{EAST},pod="east-operator-0",queue="orders"}}': stays(100),
        f'{queue}{{{EAST},pod="east-console-0",queue="orders"}}': stays(100),
        f'{queue}{{{EAST},pod="east-console-1",queue="_other"}}': stays(100),  # it names none
        f'{queue}{{{WEST},pod="west-operator-0",queue="orders"}}': stays(40),
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


def test_a_chosen_pod_of_an_edge_hides_no_other_kind_of_pod(tmp_path: Path) -> None:
    """Queues stand as they stand, whichever edge somebody looks at; and the links of boards carry the choice on."""
    operator = f'{EAST},job="operator",pod="east-operator-0"'
    series = {
        f'penstock_ready{{{EAST},job="edges",edge="tmq",pod="east-tmq-0"}}': stays(1),
        f'penstock_ready{{{EAST},job="edges",edge="tmq",pod="east-tmq-1"}}': stays(1),
        f'penstock_queue_dead_messages{{{operator},queue="orders"}}': stays(3),
        f'penstock_operator_resources{{{operator},kind="Queue",reason="Ok"}}': stays(4),
        f"penstock_report_sudden_changes{{{operator}}}": stays(5),
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
