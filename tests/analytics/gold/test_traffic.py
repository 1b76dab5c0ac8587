"""Test the tables traffic and edges, and that repeated samples count once; each case has a queue of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from services.analytics.gold.edges import edges
from services.analytics.gold.repeats import repeats, without
from services.analytics.gold.traffic import traffic
from services.analytics.tables import EDGES, TRAFFIC
from services.redis_stream.schema import Kind
from tests.analytics.gold.rows import HOUR_MS, Key, Row, bronze, by_key, sample, worked

LARGE = (1 << 64) - 1
MOST = 1 << 40
# end of a sample, its length, messages, the busiest 10 s per second
SPREAD = [
    (20_000, 10_000, 100, 10.0),  # exactly one slot
    (25_000, 10_000, 100, 5.0),
    (15_001, 1, 7, 0.7),
    (20_000, 1, 7, 0.7),
    (20_000, 0, 7, 0.7),
    (3_599_999, 86_400_000, 86_400, 1.0),  # the store was unavailable for a day
    (0, 10_000, 100, 10.0),  # all of it before the hour
    (3_000, 10_000, 100, 7.0),
    (3_000, 3_600_000, 3_600, 1.0),
]
# ms and number of each sample, and the sum of those that count, if each counts twice as much as the one before
REPEATED = {
    "in the same ms": ([(0, LARGE), (0, 1 << 20), (0, 9)], 4),
    "with a lower number, later": ([(1, 0), (0, 9)], 2),
    "of the hour before": ([(-1, 0), (1, 0)], 0),
    "of two hours before": ([(-HOUR_MS - 1, 0), (1, 0)], 2),
    "again and again": ([(-HOUR_MS - 1, 0), (-1, 0), (1, 0)], 0),
}
OTHERS = {"stream": "t", "process": "q", "n": 2, "dataset": "d2"}


def repeated() -> Iterator[Row]:
    for queue, (places, _) in REPEATED.items():
        for at, (ms, number) in enumerate(places):
            yield worked(ms, queue, number=number, **{"in": 1 << at})
    for name, other in OTHERS.items():
        yield worked(0, f"other {name}", **{"in": 1})
        yield worked(1, f"other {name}", **{"in": 1, name: other})


def told() -> Iterator[Row]:
    """Return samples of refusals, great counts and histograms."""
    late = {"refused": [("lease_lost", 30), ("full", 1)], "in": 10, "put": [0, 4, *[0] * 14]}
    yield worked(0, "idle")
    yield worked(0, "refused", refused_puts=1, **late)
    yield worked(0, "refused", n=2, refused_puts=0, refused=[("é", 2), ("full", 1)])
    yield worked(0, "old edge", refused_puts=None, **late)
    yield worked(0, "old edge", n=2, refused_puts=None)
    for n in range(3):
        yield worked(
            1000 * n, "great", n=n, **{"in": MOST, "refused": [("full", MOST)], "refused_puts": MOST}
        )


def flow(ms: int, connections: int, **told: object) -> Row:
    known = {"edge": "tmq", "process": "p", "n": ms, "refused": []}
    flows = {"opened": 1, "received_octets": 2, "sent_octets": 3}
    return sample("edge", ms, connections=connections, **flows, **{**known, **told})


FLOWS = (
    *(flow(0, 5), flow(9_999, 7), flow(10_000, 8), flow(10_001, 3, process="q")),
    # repeated from the hour before
    *(flow(-1, 99, n=20_000, process="q"), flow(20_000, 99, process="q", refused=[("busy", 1)])),
    flow(20_001, 2, process="q", refused=[("busy", 2)]),
    *(flow(30_000, 5, process="q", n=77, refused=[("late", 1)]), flow(40_000, 99, process="q", n=77)),
    flow(0, 1, edge="ring", process="r"),
)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> tuple[dict[Key, Row], dict[Key, Row]]:
    spread = [
        worked(end, f"spread {at}", ms=ms, **{"in": number, "out": 2 * number})
        for at, (end, ms, number, _) in enumerate(SPREAD)
    ]
    samples = bronze(spark, Kind.SAMPLES, [*spread, *repeated(), *told(), *FLOWS])
    once = without(samples, repeats(samples))
    return by_key(traffic(once, 0.9), TRAFFIC), by_key(edges(once), EDGES)


@pytest.fixture(scope="module")
def found(tables: tuple[dict[Key, Row], dict[Key, Row]]) -> dict[str, Row]:
    """Return the rows of the hour 3 by queue."""
    return {key[1]: row for key, row in tables[0].items() if len(key) == 3}


@pytest.mark.parametrize("at", range(len(SPREAD)))
def test_a_sample_is_spread_over_its_interval(found: dict[str, Row], at: int) -> None:
    row, peak = found[f"spread {at}"], SPREAD[at][3]
    assert row["in_peak"] == pytest.approx(peak, abs=0.01)
    assert row["out_peak"] == pytest.approx(2 * peak, abs=0.01)
    assert row["in_rate"] == SPREAD[at][2] / 3600


@pytest.mark.parametrize("queue", REPEATED)
def test_the_first_of_repeated_samples_counts(found: dict[str, Row], queue: str) -> None:
    assert (found[queue]["in"] if queue in found else 0) == REPEATED[queue][1]


@pytest.mark.parametrize("name", OTHERS)
def test_samples_of_another_identity_are_not_repeats(found: dict[str, Row], name: str) -> None:
    assert found[f"other {name}"]["in"] == 2


def test_refusals_are_in_order_of_their_reasons(found: dict[str, Row]) -> None:
    row = found["refused"]
    assert [*row["refused"].items()] == [("full", 2), ("lease_lost", 30), ("é", 2)]
    assert (row["refused_all"], row["refused_puts"], row["availability"]) == (34, 1, 10 / 11)
    assert row["budget_used"] == pytest.approx(10 / 11)  # one of 11, where one of 10 is allowed


def test_all_refusals_of_an_old_edge_are_puts(found: dict[str, Row]) -> None:
    row = found["old edge"]
    assert (row["refused_puts"], row["availability"]) == (31, 10 / 41)


def test_great_counts_are_summed_exactly(found: dict[str, Row]) -> None:
    row = found["great"]
    assert row["in"] == row["refused_all"] == 3 * MOST
    assert row["availability"] == 0.5


def test_quantiles_are_linear_inside_a_bucket(found: dict[str, Row]) -> None:
    row = found["refused"]
    assert row["put"] == [0, 4, *[0] * 14]
    assert row["put_p50"] == pytest.approx(0.00075)
    assert row["put_p90"] == pytest.approx(0.00095)
    assert row["wait_p50"] is row["wait_p99"] is None


def test_a_queue_without_puts_has_no_availability(found: dict[str, Row]) -> None:
    row = found["idle"]
    assert (row["refused"], row["refused_all"], row["in_peak"]) == ({}, 0, 0.0)
    assert row["availability"] is row["budget_used"] is None


def test_edges_sum_connections_of_processes(tables: tuple[dict[Key, Row], dict[Key, Row]]) -> None:
    rows = {key[0]: row for key, row in tables[1].items() if len(key) == 1}
    flows = {"opened": 6, "received_octets": 12, "sent_octets": 18}
    refused = {"busy": 2, "late": 1}
    # 8 and 3 from 10 to 20 s
    assert rows["tmq"] == {"processes": 2, "connections_max": 11, **flows, "refused": refused}
    assert (rows["ring"]["connections_max"], rows["ring"]["refused"]) == (1, {})
