"""Test the tables of dead letters: deaths, origins and failures."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from services.analytics.gold.deaths import deaths
from services.analytics.gold.failures import failures
from services.analytics.gold.origins import origins
from services.analytics.tables import DEATHS, FAILURES, ORIGINS
from services.redis_stream.schema import Kind
from tests.analytics.gold.rows import Key, Row, at, bronze, by_key, ids, letter

LARGE = (1 << 64) - 1
AGES_MS = (0, 1, 2, 10, 11, 86_400_000, 86_400_001, -5)  # at bounds of the histogram, and beyond
AGE = [3, 1, 1, 1, *[0] * 10, 1, 1]


def test_deaths_counts_letters_and_their_ages(spark: SparkSession) -> None:
    aged = [
        letter(1000, queue="é", enqueued=at(1000 - age), acquired=n, redriven=n % 3, size=1 << 40)
        for n, age in enumerate(AGES_MS)
    ]
    others = [
        letter(0, reason="attempts"),
        letter(0, edge="ring"),
        letter(0, dataset="d2"),
        letter(3_600_000),
    ]
    rows = by_key(deaths(bronze(spark, Kind.DEAD, [*aged, *others])), DEATHS)
    assert {key: row["count"] for key, row in rows.items()} == {
        ("main", "é", "expired", "tmq"): len(aged),
        ("main", "orders", "attempts", "tmq"): 1,
        ("main", "orders", "expired", "ring"): 1,
        ("main", "orders", "expired", "tmq"): 1,
        ("04", "main", "orders", "expired", "tmq"): 1,
    }
    row = rows["main", "é", "expired", "tmq"]
    assert row["age"] == AGE
    assert (row["octets"], row["acquired_mean"], row["redriven"]) == (8 << 40, 3.5, 5)
    # the fourth of 8 is the only one from 1 to 5 ms; 90 % of 8 lie beyond the last bound
    assert row["age_p50"] == pytest.approx(0.005)
    assert row["age_p90"] == row["age_p99"] == 86_400


def test_origins_are_the_most_frequent_of_each_queue_and_hour(spark: SparkSession) -> None:
    told = {"tmq c": 2, "tmq b": 2, "tmq é": 2, "tmq a": 1, "tmq d": 3}
    rows = [letter(n, origin=name) for name, number in told.items() for n in range(number)]
    rows += [letter(0, queue="other", origin="x"), letter(3_600_000, origin="tmq a")]
    found = by_key(origins(bronze(spark, Kind.DEAD, rows), 3), ORIGINS)
    assert {key: row["count"] for key, row in found.items()} == {
        ("main", "orders", "tmq d"): 3,
        ("main", "orders", "tmq b"): 2,
        ("main", "orders", "tmq c"): 2,
        ("main", "other", "x"): 1,
        ("04", "main", "orders", "tmq a"): 1,
    }


@pytest.fixture(scope="module")
def alike(spark: SparkSession) -> dict[Key, Row]:
    """Failures with one letter of each name; `top` is 2."""
    rows = [
        letter(9 - n, queue="numbers", id=ids(0, number), error=f"no {number}")
        for n, number in enumerate((LARGE, 1 << 20, 9))
    ]
    rows += [
        letter(0, queue="ms", id=f"{ms}-{number}", error=f"{ms}")
        for ms, number in ((LARGE, 0), (10, 0), (9, LARGE))
    ]
    rows += [
        letter(0, queue="streams", stream=stream, error=stream, dataset=dataset)
        for stream, dataset in (("b", "d1"), ("a", "d2"), ("a", "d3"))
    ]
    rows += [letter(0, queue="long", error="🐰" * 201)]
    ties = Counter({("expired", "b", "f"): 1, ("attempts", "z", "z"): 1, ("expired", "a", "g"): 1})
    rows += [
        letter(0, queue="ties", reason=reason, pattern=pattern, fingerprint=fingerprint)
        for reason, pattern, fingerprint in ties.elements()
    ]
    return by_key(failures(bronze(spark, Kind.DEAD, rows), 2), FAILURES)


@pytest.mark.parametrize(
    ("queue", "example_id", "example"),
    [
        ("numbers", ids(0, 9), "no 9"),
        ("ms", "10-0", "10"),
        ("streams", ids(0), "a"),
        ("long", ids(0), "🐰" * 200),
    ],
)
def test_example_is_the_letter_that_died_first_and_then_the_one_with_the_least_id(
    alike: dict[Key, Row], queue: str, example_id: str, example: str
) -> None:
    row = alike["main", queue, "expired", "", "f"]
    assert (row["example_id"], row["example"]) == (example_id, example)


def test_failures_tell_when_letters_died(alike: dict[Key, Row]) -> None:
    row = alike["main", "numbers", "expired", "", "f"]
    assert (row["count"], row["first"], row["last"]) == (3, at(7), at(9))


def test_equally_frequent_failures_are_in_order_of_their_keys(alike: dict[Key, Row]) -> None:
    assert [key[2:] for key in sorted(alike) if key[1] == "ties"] == [
        ("attempts", "z", "z"),
        ("expired", "a", "g"),
    ]
