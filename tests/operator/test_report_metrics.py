"""The report of the analytics job as metrics: bounded, nothing where there is none, and fit for Prometheus."""

from __future__ import annotations

from penstock_operator.metrics import Metrics
from prometheus_client.parser import text_string_to_metric_families

from services.store.report import Report
from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.reports import NOW_MS, document, report
from tests.servers import Server, eventually
from tests.store.desk import Desk

PREFIX = "penstock_operator_report_"
KEY = "ps:{registry}:report"


def told(one: Report | None) -> dict[tuple[str, ...], float]:
    """Name and labels of each sample, as Prometheus reads the page."""
    metrics = Metrics()
    metrics.report.report = one
    found = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            if sample.name.startswith(PREFIX):
                key = (sample.name.removeprefix(PREFIX), *sample.labels.values())
                assert key not in found, f"{key} is there twice"
                found[key] = sample.value
    return found


def test_without_a_report_there_is_nothing() -> None:
    assert told(None) == {}


def test_each_figure_is_that_of_the_report() -> None:
    assert told(report()) == {
        ("time_seconds",): NOW_MS / 1000,
        ("period_seconds",): 86400,
        **{("messages", "in"): 1200, ("messages", "out"): 1100, ("messages", "refused"): 6},
        ("messages", "dead"): 12,
        **{("deaths", "attempts"): 9, ("deaths", "expired"): 3},
        ("error_budget_used_ratio",): 6 / 1206 / 0.001,
        ("queue_error_budget_used_ratio", "main", "orders"): 6.0,
        ("sudden_changes",): 1,
        **{("quarantined", "dead"): 2, ("quarantined", "samples"): 3},
        ("lost_samples",): 15,
        ("lost_streams",): 2,
    }


def test_what_is_not_known_is_not_told() -> None:
    (queue,) = document()["budget"]["queues"]
    budget = {**document()["budget"], "used": None, "queues": [{**queue, "used": None}]}
    names = {key[0] for key in told(report(budget=budget))}
    assert not names & {"error_budget_used_ratio", "queue_error_budget_used_ratio"}


def test_its_bounds_and_its_format_hold_whatever_is_written() -> None:
    """Names that are the same, very many, or made to end a line."""
    (queue,) = document()["budget"]["queues"]
    hostile = [{**queue, "queue": f'a"}}\n{PREFIX}x 1\\{number}', "used": number} for number in range(500)]
    same = [{**queue, "used": used} for used in (1.0, 3.0, 2.0)]
    deaths = {**document()["deaths"], "by_reason": [{"name": f"r{n}", "count": n} for n in range(500)]}
    found = told(report(budget={**document()["budget"], "queues": [*same, *hostile]}, deaths=deaths))
    assert found["queue_error_budget_used_ratio", "main", "orders"] == 3.0
    assert sum(key[0] == "queue_error_budget_used_ratio" for key in found) == 18
    assert sum(key[0] == "deaths" for key in found) == 20
    assert not any(key[0] == "x" for key in found)


def test_an_operator_tells_what_the_store_has(
    new_operator: NewOperator, keeper: Keeper, store: Server
) -> None:
    async def nothing(_desk: Desk) -> None:
        pass

    keeper.do(nothing, set_up=True)
    operator = new_operator(sweep_s=1).ready()
    assert f"\n{PREFIX}time_seconds " not in operator.page("metrics")[1]
    store.call("SET", KEY, b"%d " % NOW_MS + report().encode())
    eventually(lambda: operator.metric(f"{PREFIX}time_seconds") == NOW_MS / 1000)
    assert operator.metric(f"{PREFIX}deaths", reason="attempts") == 9
    store.call("SET", KEY, '1 {"version": 7}')
    eventually(lambda: operator.events("report_unreadable"))
    eventually(lambda: f"\n{PREFIX}time_seconds " not in operator.page("metrics")[1])
    store.call("SET", KEY, b"%d " % NOW_MS + report().encode())
    eventually(lambda: operator.metric(f"{PREFIX}time_seconds") == NOW_MS / 1000)
    assert len(operator.events("report_unreadable")) == 1
    store.kill9()
    eventually(lambda: operator.metric("penstock_operator_store_up") == 0)
    assert operator.metric(f"{PREFIX}time_seconds") == NOW_MS / 1000
    store.restart()
