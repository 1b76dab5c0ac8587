"""Test metrics: names, labels and cost."""

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


def test_base_metrics_are_exported() -> None:
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


def test_edge_can_add_metrics() -> None:
    metrics = Metrics("ring")
    members = gauge("penstock_ring_members", "Members of the ring", Label("ring", "1"))
    metrics.gauge(members).labels("ring", "north").set(3)
    metrics.histogram(histogram("penstock_ring_hops", "Hops", buckets=(1, 2))).labels("ring").observe(2)
    metrics.counter(counter("penstock_ring_lost_total", "Lost tokens")).labels("ring").inc()
    seen = samples(metrics)
    assert seen[f"penstock_ring_members{ {'edge': 'ring', 'ring': 'north'} }"] == 3
    assert seen[f"penstock_ring_hops_bucket{ {'edge': 'ring', 'le': '2.0'} }"] == 1
    assert seen[f"penstock_ring_lost_total{ {'edge': 'ring'} }"] == 1


def test_counters_have_no_created_series() -> None:
    """Check that counters have no `_created` series, which would double the number of series."""
    metrics = Metrics("tmq")
    metrics.requests("enq", "ok").inc()
    assert "_created" not in metrics.render().decode()


@pytest.mark.parametrize(
    "name", ["requests", "penstock_requests", "penstock_Requests_total", "penstock__total"]
)
def test_counter_name_must_end_in_total(name: str) -> None:
    with pytest.raises(ValueError, match="is not a valid name of a counter"):
        counter(name, "")


def test_other_names_must_not_end_in_total() -> None:
    with pytest.raises(ValueError, match="is not a valid name of a gauge"):
        gauge("penstock_requests_total", "")


def test_metrics_of_two_edges_are_independent() -> None:
    assert Metrics("a").registry is not Metrics("a").registry


def test_process_counters_sum_all_listeners_and_never_fall() -> None:
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


def test_store_observer_counts_events() -> None:
    metrics = Metrics("tmq")
    assert isinstance(metrics.store_observer, Shell)
    metrics.store_observer("queue_full", 3)
    assert samples(metrics)[f"penstock_store_events_total{ {'edge': 'tmq', 'reason': 'queue_full'} }"] == 3
