"""Queues in metrics: so many have names, whatever clients make, and all others are one."""

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


class Told(NamedTuple):
    """As a store tells it."""

    numbers: tuple[int, ...] = (0,) * 7
    refused: Mapping[str, int] = MappingProxyType({})
    put: list[int] = NOTHING
    wait: list[int] = NOTHING


def classes(**numbers: int) -> list[int]:
    """c0=2, c15=1: two in the first class, one in the last."""
    return [numbers.get(f"c{at}", 0) for at in range(len(NOTHING))]


def shown(metrics: Metrics, name: str) -> dict[str, float]:
    """Values by queue."""
    families = text_string_to_metric_families(metrics.render().decode())
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return {sample.labels["queue"]: sample.value for sample in samples}


def metered(most: int = 2, *, latencies: bool = False) -> Metrics:
    metrics = Metrics("tmq")
    metrics.meter_queues(most, latencies=latencies)
    return metrics


def hear(metrics: Metrics, name: str, told: Told) -> None:
    assert metrics.queues is not None
    metrics.queues.hear(name, told)


def test_what_is_done_with_each_queue() -> None:
    metrics = metered()
    hear(metrics, "orders", Told((1, 20, 3, 40, 5, 6, 7), Counter(queue_full=2)))
    hear(metrics, "orders", Told((1, 0, 0, 0, 0, 0, 0), Counter(queue_full=1, queue_paused=0)))
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


def test_it_is_asked_for_when_somebody_looks() -> None:
    metrics = metered()
    hear_it = metrics.store_observer.meter(lambda: hear(metrics, "orders", Told((1,) * 7)))
    assert hear_it is not None
    for number in (1, 2):
        metrics.publish_queues()
        assert shown(metrics, measures.QUEUE_IN.name) == {"orders": number}


def test_off_there_is_nothing_and_nobody_hears() -> None:
    metrics = Metrics("tmq")
    assert metrics.store_observer.meter(lambda: pytest.fail("asked")) is None
    assert "penstock_queue" not in metrics.render().decode()


def test_so_many_have_names() -> None:
    metrics = metered(2)
    for number in range(1000):
        hear(metrics, f"q{number}", Told((1,) * 7))
    hear(metrics, "q1", Told((1,) * 7))
    assert shown(metrics, measures.QUEUE_IN.name) == {"q0": 1, "q1": 2, OTHER: 998}


def test_names_may_be_anything() -> None:
    metrics = metered(9)
    names = ["", 'a"} 7\nx', "\\", "\0", "ü", b"\xff".decode("utf-8", "surrogateescape"), "a\rb"]
    for name in names:
        hear(metrics, name, Told((1,) * 7))
    assert shown(metrics, measures.QUEUE_IN.name).keys() == {*names[:5], "\ufffd", "a\rb"}


def test_times_are_histograms() -> None:
    metrics = metered(latencies=True)
    hear(metrics, "orders", Told(put=classes(c0=2, c15=1), wait=classes(c6=4)))
    hear(metrics, "orders", Told())
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


def test_times_are_left_out_unless_they_are_asked_for() -> None:
    metrics = metered()
    hear(metrics, "orders", Told(put=classes(c0=2)))
    text = metrics.render().decode()
    assert all(
        measure.name not in text for measure in (measures.QUEUE_PUT_SECONDS, measures.QUEUE_WAIT_SECONDS)
    )


def test_no_file_without_workers() -> None:
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ


def series(metrics: Metrics) -> int:
    """How many there are of one queue."""
    hear(metrics, "orders", Told())
    return metrics.render().decode().count('queue="orders"')


@pytest.mark.parametrize(
    "file", ["docs/metrics.md", "charts/penstock/values.yaml", "charts/penstock/README.md"]
)
def test_pages_say_how_many_series_a_queue_has(file: str) -> None:
    """Whoever sets `metrics.queues` reckons with it what Prometheus needs."""
    one, timed = series(metered()), series(metered(latencies=True))
    text = (ROOT / file).read_text()
    assert re.findall(r"(\d+) series more a queue", text) == [str(timed - one)]
    if file.startswith("docs"):
        assert re.findall(r"`penstock_queue_in_messages_total` and the like, (\d+) series", text) == [
            str(one)
        ]
