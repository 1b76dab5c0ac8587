"""Metrics: names, labels, and how little they cost where it matters."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.kit.measure import Label, counter, gauge, histogram
from services.kit.metrics.metrics import Metrics, Traffic
from services.store.upkeep.process_counters import Shell


def samples(metrics: Metrics) -> dict[str, float]:
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        f"{sample.name}{dict(sorted(sample.labels.items()))}": sample.value
        for family in families
        for sample in family.samples
    }


def test_requests_are_counted_by_run_and_children_are_kept() -> None:
    metrics = Metrics("tmq")
    assert metrics.requests("enq", "ok") is metrics.requests("enq", "ok")
    metrics.requests("enq", "ok").inc(200)
    metrics.seconds("enq").observe(0.003)
    seen = samples(metrics)
    labels = {"edge": "tmq", "operation": "enq"}
    assert seen[f"penstock_requests_total{ {**labels, 'result': 'ok'} }"] == 200
    assert seen[f"penstock_request_seconds_count{labels}"] == 1
    assert seen[f"penstock_request_seconds_bucket{ {'edge': 'tmq', 'le': '0.005', 'operation': 'enq'} }"] == 1
    assert (
        seen[f"penstock_request_seconds_bucket{ {'edge': 'tmq', 'le': '0.0025', 'operation': 'enq'} }"] == 0
    )


def test_the_base_metrics_are_all_there() -> None:
    metrics = Metrics("tmq")
    metrics.connections.labels("tmq", "document").inc()
    metrics.opened.labels("tmq", "document").inc()
    metrics.received_bytes.labels("tmq", "document").inc(7)
    metrics.sent_bytes.labels("tmq", "document").inc(9)
    metrics.count_refusal("bad_name")
    metrics.local_errors.inc()
    metrics.ready.set(1)
    metrics.input_held.set(5)
    at = {"edge": "tmq", "listener": "document"}
    seen = samples(metrics)
    assert seen[f"penstock_connections{at}"] == 1
    assert seen[f"penstock_connections_opened_total{at}"] == 1
    assert seen[f"penstock_received_bytes_total{at}"] == 7
    assert seen[f"penstock_sent_bytes_total{at}"] == 9
    assert seen[f"penstock_refusals_total{ {'edge': 'tmq', 'reason': 'bad_name'} }"] == 1
    assert seen[f"penstock_local_errors_total{ {'edge': 'tmq'} }"] == 1
    assert seen[f"penstock_ready{ {'edge': 'tmq'} }"] == 1
    assert seen[f"penstock_input_held_bytes{ {'edge': 'tmq'} }"] == 5
    assert seen["process_resident_memory_bytes{}"] > 0
    assert seen[f"penstock_build_info{ {'version': version('penstock')} }"] == 1


def test_an_edge_has_metrics_of_its_own() -> None:
    metrics = Metrics("ring")
    members = gauge("penstock_ring_members", "Members of the ring", Label("ring", "1"))
    metrics.gauge(members).labels("ring", "north").set(3)
    metrics.histogram(histogram("penstock_ring_hops", "Hops", buckets=(1, 2))).labels("ring").observe(2)
    metrics.counter(counter("penstock_ring_lost_total", "Lost tokens")).labels("ring").inc()
    seen = samples(metrics)
    assert seen[f"penstock_ring_members{ {'edge': 'ring', 'ring': 'north'} }"] == 3
    assert seen[f"penstock_ring_hops_bucket{ {'edge': 'ring', 'le': '2.0'} }"] == 1
    assert seen[f"penstock_ring_lost_total{ {'edge': 'ring'} }"] == 1


def test_nobody_is_told_when_a_counter_began() -> None:
    """It would be a second series for each."""
    metrics = Metrics("tmq")
    metrics.requests("enq", "ok").inc()
    assert "_created" not in metrics.render().decode()


@pytest.mark.parametrize(
    "name", ["requests", "penstock_requests", "penstock_Requests_total", "penstock__total"]
)
def test_a_counter_is_named_as_one(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a counter"):
        counter(name, "")


def test_nothing_else_is_named_as_a_counter() -> None:
    with pytest.raises(ValueError, match="is no name of a gauge"):
        gauge("penstock_requests_total", "")


def test_two_in_one_process_do_not_meet() -> None:
    assert Metrics("a").registry is not Metrics("a").registry


def test_what_a_process_tells_of_itself_is_of_all_listeners_and_never_falls() -> None:
    metrics = Metrics("tmq")
    one, two = Traffic(), Traffic()
    metrics.traffics += [one, two]
    one.open, one.opened, one.received, one.sent = 1, 3, 100, 50
    two.open, two.opened, two.received, two.sent = 2, 2, 11, 7
    assert one.since() == (100, 50)
    one.received += 5
    assert (one.since(), one.since()) == ((5, 0), (0, 0))
    metrics.count_refusal("address_not_allowed")
    assert metrics.store_observer.figures() == (3, 5, 116, 57, {"address_not_allowed": 1})


def test_the_stores_observer_counts_its_events() -> None:
    metrics = Metrics("tmq")
    assert isinstance(metrics.store_observer, Shell)
    metrics.store_observer("queue_full", 3)
    assert samples(metrics)[f"penstock_store_events_total{ {'edge': 'tmq', 'reason': 'queue_full'} }"] == 3
