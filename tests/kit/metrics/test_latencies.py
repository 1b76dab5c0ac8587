"""Test that published latencies equal observed ones."""

import pytest

from services.kit.measure import SECONDS_BUCKETS
from services.kit.metrics.metrics import Latencies, Metrics


def samples(metrics: Metrics, operation: str) -> dict[str, float]:
    found = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            wanted = sample.name.startswith("penstock_request_seconds") and not sample.name.endswith(
                "_created"
            )
            if wanted and sample.labels["operation"] == operation:
                found[sample.name + sample.labels.get("le", "")] = sample.value
    return found


def test_published_latencies_equal_observed_ones() -> None:
    metrics = Metrics("test")
    latencies = Latencies()
    times = [0.0, 0.0004, 0.0005, 0.0006, 0.2, 31.0, *SECONDS_BUCKETS]
    for seconds in times:
        latencies.note(seconds, 3)
        for _ in range(3):
            metrics.seconds("one by one").observe(seconds)
    latencies.publish(metrics.seconds("at once"))
    ours, theirs = samples(metrics, "at once"), samples(metrics, "one by one")
    assert ours.pop("penstock_request_seconds_sum") - theirs.pop("penstock_request_seconds_sum") < 1e-9
    assert ours == theirs
    assert ours["penstock_request_seconds_count"] == 3 * len(times)


def test_store_latencies_are_published_with_their_number() -> None:
    metrics = Metrics("test")
    for seconds in (0.0004, 0.2, 31.0):
        metrics.store_observer.took(seconds)
    metrics.publish_store_calls()
    metrics.publish_store_calls()
    value = metrics.registry.get_sample_value
    assert value("penstock_store_call_seconds_count", {"edge": "test"}) == 3
    assert value("penstock_store_call_seconds_sum", {"edge": "test"}) == pytest.approx(31.2004)
    assert value("penstock_store_call_seconds_bucket", {"edge": "test", "le": "0.25"}) == 2


def test_published_latencies_are_reset() -> None:
    metrics = Metrics("test")
    latencies = Latencies()
    latencies.note(0.1, 5)
    latencies.publish(metrics.seconds("enq"))
    latencies.publish(metrics.seconds("enq"))
    assert samples(metrics, "enq")["penstock_request_seconds_count"] == 5
