"""Test metrics of queues: a limited number of labels."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.kit.metrics import measures
from services.kit.metrics.metrics import Metrics
from services.kit.metrics.queue_names import OTHER

ROOT = Path(__file__).parents[3]
NOTHING = [0] * (len(measures.QUEUE_PUT_SECONDS.buckets) + 1)


class Counts(NamedTuple):
    """A report of the store."""

    numbers: tuple[int, ...] = (0,) * 7
    refused: Mapping[str, int] = MappingProxyType({})
    put: list[int] = NOTHING
    wait: list[int] = NOTHING


def classes(**numbers: int) -> list[int]:
    """Return counts by class: c0=2, c15=1 means two in the first class, one in the last."""
    return [numbers.get(f"c{at}", 0) for at in range(len(NOTHING))]


def shown(metrics: Metrics, name: str) -> dict[str, float]:
    """Return values by queue."""
    families = text_string_to_metric_families(metrics.render().decode())
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return {sample.labels["queue"]: sample.value for sample in samples}


def metered(most: int = 2, *, latencies: bool = False) -> Metrics:
    metrics = Metrics("tmq")
    metrics.meter_queues(most, latencies=latencies)
    return metrics


def count(metrics: Metrics, name: str, counts: Counts) -> None:
    assert metrics.queues is not None
    metrics.queues.add(name, counts)


def test_operations_are_counted_per_queue() -> None:
    metrics = metered()
    count(metrics, "orders", Counts((1, 20, 3, 40, 5, 6, 7), Counter(queue_full=2)))
    count(metrics, "orders", Counts((1, 0, 0, 0, 0, 0, 0), Counter(queue_full=1, queue_paused=0)))
    for measure, number in (
        (measures.QUEUE_IN, 2),
        (measures.QUEUE_IN_BYTES, 20),
        (measures.QUEUE_OUT, 3),
        (measures.QUEUE_OUT_BYTES, 40),
        (measures.QUEUE_ACKED, 5),
        (measures.QUEUE_RETURNED, 6),
        (measures.QUEUE_REJECTED, 7),
        (measures.QUEUE_REFUSED, 3),
    ):
        assert shown(metrics, measure.name) == {"orders": number}
    assert "queue_paused" not in metrics.render().decode()


def test_scrape_fetches_counts_from_the_store() -> None:
    metrics = metered()
    counted = metrics.store_observer.meter(lambda: count(metrics, "orders", Counts((1,) * 7)))
    assert counted is not None
    for number in (1, 2):
        metrics.publish_queues()
        assert shown(metrics, measures.QUEUE_IN.name) == {"orders": number}


def test_queue_metrics_are_off_by_default() -> None:
    metrics = Metrics("tmq")
    assert metrics.store_observer.meter(lambda: pytest.fail("asked")) is None
    assert "penstock_queue" not in metrics.render().decode()


def test_number_of_labels_is_limited() -> None:
    metrics = metered(2)
    for number in range(1000):
        count(metrics, f"q{number}", Counts((1,) * 7))
    count(metrics, "q1", Counts((1,) * 7))
    assert shown(metrics, measures.QUEUE_IN.name) == {"q0": 1, "q1": 2, OTHER: 998}


def test_labels_of_any_names_are_valid_utf8() -> None:
    metrics = metered(9)
    names = ["", 'a"} 7\nx', "\\", "\0", "ü", b"\xff".decode("utf-8", "surrogateescape"), "a\rb"]
    for name in names:
        count(metrics, name, Counts((1,) * 7))
    assert shown(metrics, measures.QUEUE_IN.name).keys() == {*names[:5], "\ufffd", "a\rb"}


def test_queue_latencies_are_histograms() -> None:
    metrics = metered(latencies=True)
    count(metrics, "orders", Counts(put=classes(c0=2, c15=1), wait=classes(c6=4)))
    count(metrics, "orders", Counts())
    text = metrics.render().decode()
    labels = 'edge="tmq",queue="orders"'
    for line in (
        'penstock_queue_put_seconds_bucket{edge="tmq",le="0.0005",queue="orders"} 2.0',
        'penstock_queue_put_seconds_bucket{edge="tmq",le="30.0",queue="orders"} 2.0',
        'penstock_queue_put_seconds_bucket{edge="tmq",le="+Inf",queue="orders"} 3.0',
        f"penstock_queue_put_seconds_count{{{labels}}} 3.0",
        f"penstock_queue_put_seconds_sum{{{labels}}} 30.0005",
        'penstock_queue_wait_seconds_bucket{edge="tmq",le="0.5",queue="orders"} 0.0',
        'penstock_queue_wait_seconds_bucket{edge="tmq",le="1.0",queue="orders"} 4.0',
        f"penstock_queue_wait_seconds_sum{{{labels}}} 3.0",
    ):
        assert f"\n{line}\n" in text


def test_queue_latencies_are_off_by_default() -> None:
    metrics = metered()
    count(metrics, "orders", Counts(put=classes(c0=2)))
    text = metrics.render().decode()
    assert all(
        measure.name not in text for measure in (measures.QUEUE_PUT_SECONDS, measures.QUEUE_WAIT_SECONDS)
    )


def test_single_process_writes_no_file() -> None:
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ


def series(metrics: Metrics) -> int:
    """Return the number of series of one queue."""
    count(metrics, "orders", Counts())
    return metrics.render().decode().count('queue="orders"')


@pytest.mark.parametrize(
    "file", ["docs/metrics.md", "charts/penstock/values.yaml", "charts/penstock/README.md"]
)
def test_documents_state_the_series_per_queue(file: str) -> None:
    """Check that documents state the series per queue: operators size Prometheus for `metrics.queues` by it."""
    one, timed = series(metered()), series(metered(latencies=True))
    text = (ROOT / file).read_text()
    assert re.findall(r"(\d+) more series per queue", text) == [str(timed - one)]
    if file.startswith("docs"):
        assert re.findall(r"`penstock_queue_in_messages_total` and the like, (\d+) series", text) == [
            str(one)
        ]
