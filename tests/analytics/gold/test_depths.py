"""Test the tables depths and redrives; each case has a domain of its own, as queues of a domain are compared."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from pyspark.sql import SparkSession

from services.analytics.gold.depths import depths
from services.analytics.gold.redrives import redrives
from services.analytics.tables import DEPTHS, REDRIVES
from services.redis_stream.schema import Kind
from tests.analytics.gold.rows import HOUR_MS, Key, Row, bronze, by_key, looked

LARGE = (1 << 64) - 1
NEXT = HOUR_MS
Look = tuple[int, str, int]  # ms, id of the queue, messages added
CASES: dict[str, tuple[list[Look], int]] = {
    "only the base": ([(0, "4", 10)], 0),
    "two samples": ([(0, "4", 10), (1, "4", 13)], 3),
    "a sample of the hour before": ([(-60_000, "4", 8), (0, "4", 10)], 2),
    "a sample of two hours before": ([(-NEXT - 1, "4", 8), (0, "4", 10)], 0),
    "created again": ([(-60_000, "3", 8), (0, "4", 10)], 10),
    "the store lost data": ([(0, "4", 10), (1, "4", 4), (2, "4", 5)], 1),
    "created again in the hour": ([(0, "4", 10), (1, "5", 4)], 4),
}
# age at the first sample, what is added until the second one
AGES = {0: 13, 60_000: 13, 3_660_000: 13, 3_660_001: 3, 604_800_000: 3}


def aged(age_ms: int) -> Iterable[Row]:
    told = {"domain": f"aged {age_ms}"}
    return (
        looked(-600_000, "other", "5", **told),
        looked(60_000, "other", "5", **told),
        looked(60_000, added=10, age_ms=age_ms, **told),
        looked(70_000, added=13, **told),
    )


def states() -> Iterable[Row]:
    """Return samples of one ms, whose numbers are in order as numbers only, and those of another store."""
    own = {"domain": "states", "qid": "4"}
    for number, length in ((LARGE, 5), (9, 1), (1 << 20, 3)):
        more = {"len": length, "leased": length * 2, "oldest_ms": 7, "dead": length, "purged": 10 + length}
        yield looked(5, number=number, **own, **more)
    yield looked(4, dataset="d2", **own, len=9, dead=70, purged=1)
    yield looked(6, dataset="d2", **own, len=9, dead=80, purged=3)


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[Key, Row]:
    rows = [
        looked(ms, qid=qid, added=added, domain=name)
        for name, (looks, _) in CASES.items()
        for ms, qid, added in looks
    ]
    rows += [row for age_ms in AGES for row in aged(age_ms)]
    rows += states()
    rows += [
        looked(ms, queue, qid, added=10, domain=domain)
        for ms, queue, qid, domain in (
            *((0, "first", "4", "late"), (600_000, "soon", "6", "late"), (600_001, "new", "5", "late")),
            (3_000_000, "there", "7", "elsewhere"),
            *((-NEXT + 5, "first", "4", "before"), (0, "new", "5", "before")),
            *((-NEXT - 5, "first", "4", "long before"), (0, "base", "5", "long before")),
        )
    ]
    return by_key(depths(bronze(spark, Kind.SAMPLES, rows)), DEPTHS)


@pytest.mark.parametrize("name", CASES)
def test_counters_are_differences(found: dict[Key, Row], name: str) -> None:
    row = found[name, "orders"]
    assert row["added"] == CASES[name][1]
    assert row["resets"] == (name == "the store lost data")


@pytest.mark.parametrize("age_ms", AGES)
def test_a_new_queue_counts_from_zero(found: dict[Key, Row], age_ms: int) -> None:
    """Check that a queue created in the hour before is new too, and an older one is not."""
    assert found[f"aged {age_ms}", "orders"]["added"] == AGES[age_ms]


@pytest.mark.parametrize(
    ("domain", "queue", "added"),
    [
        *(("late", "first", 0), ("late", "soon", 0), ("late", "new", 10), ("elsewhere", "there", 0)),
        *(("before", "new", 10), ("long before", "base", 0)),
    ],
)
def test_a_queue_first_sampled_long_after_others_is_new(
    found: dict[Key, Row], domain: str, queue: str, added: int
) -> None:
    assert found[domain, queue]["added"] == added


def test_samples_are_in_order_of_their_ids_as_numbers(found: dict[Key, Row]) -> None:
    row = found["states", "orders"]
    # 9 -> 1 << 20 -> LARGE; the other store's counter rose by 2
    assert (row["purged"], row["resets"]) == (2 + 2 + 2, 0)
    # the sample at 6 ms is the last
    assert (row["samples"], row["len_min"], row["len_mean"], row["len_max"]) == (5, 1, 27 / 5, 9)
    assert (row["leased_max"], row["oldest_ms_max"], row["dead_last"]) == (10, 7, 80)


def test_redrives_compare_with_messages_that_died_again(spark: SparkSession) -> None:
    told = {"both": (4, 1), "none died": (2, 0), "only died": (0, 3), "more died": (1, 5), "neither": (0, 0)}
    keys = ("2026-11-24", "03", "main")
    of_depths = [(*keys, queue, back) for queue, (back, _) in told.items() if queue != "only died"]
    of_deaths = [
        (*keys, queue, reason, number)
        for queue, (_, died) in told.items()
        for reason, number in (("expired", died), ("attempts", 0))
    ]
    columns = "day string, hour string, domain string, queue string"
    rows = redrives(
        spark.createDataFrame(of_deaths, f"{columns}, reason string, redriven bigint"),
        spark.createDataFrame(of_depths, f"{columns}, redriven bigint"),
    )
    found = {queue: (*row.values(),) for (_, queue), row in by_key(rows, REDRIVES).items()}
    assert found == {
        "both": (4, 1, 0.75),
        "none died": (2, 0, 1.0),
        "only died": (0, 3, None),
        "more died": (1, 5, 0.0),
    }
