"""Test metrics of the analytics report: bounded, and absent without a report."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from services.kit.metrics.report_metrics import SHOWN, ReportMetrics
from services.store.report.report import Report
from services.store.report.report_figures import figures
from tests.reports import NOW_MS, document, report

PREFIX = "penstock_report_"


def samples(one: Report | None) -> dict[tuple[str, ...], float]:
    """Return name and labels of each sample, as Prometheus reads the page."""
    registry, metrics = CollectorRegistry(), ReportMetrics()
    registry.register(metrics)
    metrics.update(figures(one) if one is not None else None)
    found = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            if sample.name.startswith(PREFIX):
                key = (sample.name.removeprefix(PREFIX), *sample.labels.values())
                assert key not in found, f"{key} is there twice"
                found[key] = sample.value
    return found


def test_no_values_without_a_report() -> None:
    assert samples(None) == {}


def test_each_value_is_that_of_the_report() -> None:
    assert samples(report()) == {
        ("time_seconds",): NOW_MS / 1000,
        ("period_seconds",): 86400,
        **{("messages", "in"): 1200, ("messages", "out"): 1100, ("messages", "refused"): 6},
        ("messages", "dead"): 14,
        **{("deaths", "attempts"): 9, ("deaths", "expired"): 3},
        ("error_budget_used_ratio",): 6 / 1206 / 0.001,
        ("queue_error_budget_used_ratio", "main", "orders"): 6.0,
        ("sudden_changes",): 1,
        **{("quarantined", "dead"): 2, ("quarantined", "samples"): 3},
        ("late_records",): 4,
        ("lost_samples",): 15,
        ("lost_streams",): 2,
    }


def test_unknown_values_are_absent() -> None:
    (queue,) = document()["budget"]["queues"]
    budget = {**document()["budget"], "used": None, "queues": [{**queue, "used": None}]}
    names = {key[0] for key in samples(report(budget=budget))}
    assert not names & {"error_budget_used_ratio", "queue_error_budget_used_ratio"}


def test_numbers_of_series_are_bounded_for_any_report() -> None:
    """Check that the number of series is bounded for equal names, very many, or ones with line ends."""
    (queue,) = document()["budget"]["queues"]
    hostile = [{**queue, "queue": f'a"}}\n{PREFIX}x 1\\{number}', "used": number} for number in range(500)]
    same = [{**queue, "used": used} for used in (1.0, 3.0, 2.0)]
    deaths = {**document()["deaths"], "by_reason": [{"name": f"r{n}", "count": n} for n in range(500)]}
    found = samples(report(budget={**document()["budget"], "queues": [*same, *hostile]}, deaths=deaths))
    assert found["queue_error_budget_used_ratio", "main", "orders"] == 3.0
    assert sum(key[0] == "queue_error_budget_used_ratio" for key in found) == 18
    assert sum(key[0] == "deaths" for key in found) == 20
    assert not any(key[0] == "x" for key in found)


def test_every_value_of_a_report_is_exported() -> None:
    assert {*figures(report())} == {*SHOWN}
