"""Compare the table `changes` with plain Python (docs/analytics.md, "changes")."""

from __future__ import annotations

import random
from math import sqrt
from statistics import median
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from services.analytics.gold.changes import changes
from services.analytics.hours import later
from services.analytics.tables import CHANGES
from tests.stores import chance

__all__ = ["chance"]

LAST = "2026-11-20T05"
QUEUES = ("a", "b", "c")
COUNTS = {"in": "in", "out": "out", "refused": "refused_all", "deaths": "count"}
LEVELS = {"len_max": "len_max", "put_p99": "put_p99", "wait_p99": "wait_p99"}
COLUMNS = {
    "traffic": {
        **dict.fromkeys(("in", "out", "refused_all"), pa.int64()),
        **dict.fromkeys(("put_p99", "wait_p99"), pa.float64()),
    },
    "depths": {"len_max": pa.int64()},
    "deaths": {"count": pa.int64()},
}
Rows = list[dict[str, Any]]
Key = tuple[str, str, str]


def hours(number: int) -> list[str]:
    return [later(LAST, at - number + 1) for at in range(number)]


def place(hour: str) -> dict[str, str]:
    return {"day": hour[:10], "hour": hour[11:], "domain": "main"}


def some_rows(chance: random.Random, number: int, missing: float) -> dict[str, Rows]:
    """Return rows of each table; two edges share a queue's traffic. Some hours are sudden, some unknown."""
    told: dict[str, Rows] = {"traffic": [], "depths": [], "deaths": []}
    for hour in hours(number):
        sudden = 9 if hour == LAST else chance.choice((1, 1, 0, 9)) if hour >= later(LAST, -3) else 1
        for queue in QUEUES:
            own = {**place(hour), "queue": queue}
            for _ in range(chance.choice((1, 2)) if chance.random() > missing else 0):
                counts = {name: chance.randrange(90, 110) * sudden for name in ("in", "out")}
                late = {name: chance.choice((None, 0.01 * sudden)) for name in ("put_p99", "wait_p99")}
                told["traffic"].append(own | counts | late | {"refused_all": chance.randrange(3) * sudden})
            if chance.random() > missing:
                told["depths"].append({**own, "len_max": chance.randrange(40, 44) * sudden})
            for _ in range(chance.choice((0, 0, 1)) * sudden):
                told["deaths"].append({**own, "count": chance.randrange(1, 30)})
    return told


def known(told: dict[str, Rows]) -> list[str]:
    return sorted({f"{row['day']}T{row['hour']}" for rows in told.values() for row in rows})


def series(told: dict[str, Rows], metric: str, queue: str) -> dict[str, float]:
    """Return the known values by hour."""
    column = {**COUNTS, **LEVELS}[metric]
    rows = told["deaths" if metric == "deaths" else "depths" if metric == "len_max" else "traffic"]
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["queue"] == queue and row[column] is not None:
            found.setdefault(f"{row['day']}T{row['hour']}", []).append(row[column])
    return {hour: sum(each) if metric in COUNTS else max(each) for hour, each in found.items()}


def judged(
    told: dict[str, Rows], metric: str, queue: str, hour: str, week_days: int
) -> dict[str, Any] | None:
    there = known(told)
    week = [each for each in there if later(hour, -24 * week_days) <= each < hour]
    values = series(told, metric, queue)
    if hour not in there or len(week) < 24 or not values:
        return None
    if metric in COUNTS:
        values = {each: values.get(each, 0) for each in (*week, hour)}
    history = [values[each] for each in week if each in values]
    if len(history) < 24 or hour not in values:
        return None
    middle, value = median(history), values[hour]
    spread = median(abs(each - middle) for each in history) * 1.4826
    least = max(sqrt(middle), 1.0) if metric in COUNTS else max(middle / 10, 0.001)
    z = (value - middle) / max(spread, least)
    if abs(z) < 6 or (max(value, middle) < 20 and not metric.endswith("p99")):
        return None
    figures = {"value": value, "week_median": middle, "week_spread": spread, "z": z, "week_hours": len(week)}
    return {name: pytest.approx(each, rel=1e-12) for name, each in figures.items()} | {
        "verdict": "up" if z > 0 else "down"
    }


def frames(spark: SparkSession, told: dict[str, Rows]) -> tuple[DataFrame, DataFrame, DataFrame]:
    keys = dict.fromkeys(("day", "hour", "domain", "queue"), pa.string())
    traffic, depths, deaths = (
        spark.createDataFrame(pa.Table.from_pylist(told[name], schema=pa.schema({**keys, **columns})))
        for name, columns in COLUMNS.items()
    )
    return traffic, depths, deaths


def found(
    spark: SparkSession, told: dict[str, Rows], of: list[str], week_days: int
) -> dict[str, dict[Key, dict[str, Any]]]:
    rows = changes(frames(spark, told), of, known(told), week_days)
    assert rows.columns == [each.name for each in CHANGES.columns]
    answer: dict[str, dict[Key, dict[str, Any]]] = {}
    for row in rows.toArrow().to_pylist():
        day, hour, domain, queue, metric = (row.pop(name) for name in CHANGES.key_names())
        of_hour = answer.setdefault(f"{day}T{hour}", {})
        assert (domain, queue, metric) not in of_hour
        of_hour[domain, queue, metric] = row
    return answer


@pytest.mark.parametrize(("number", "week_days", "missing"), [(200, 7, 0.3), (60, 1, 0.02)])
def test_they_are_what_plain_python_finds(
    spark: SparkSession, chance: random.Random, number: int, week_days: int, missing: float
) -> None:
    told, of = some_rows(chance, number, missing), hours(4)
    wanted = {
        hour: {
            ("main", queue, metric): row
            for metric in (*COUNTS, *LEVELS)
            for queue in QUEUES
            if (row := judged(told, metric, queue, hour, week_days)) is not None
        }
        for hour in of
    }
    assert wanted[LAST]
    assert found(spark, told, of, week_days) == {hour: rows for hour, rows in wanted.items() if rows}


def test_steady_values_are_not_among_them(spark: SparkSession, chance: random.Random) -> None:
    """Check values of a week with one sudden hour, and the same with less than a day of history."""
    rows = [
        {**place(hour), "queue": "a", "in": chance.randrange(90, 110), "out": 100}
        | {"refused_all": 0, "put_p99": 0.01, "wait_p99": 0.01}
        for hour in hours(100)
    ]
    rows[-1]["in"] = 5000
    assert [*found(spark, {"traffic": rows, "depths": [], "deaths": []}, hours(50), 7)] == [LAST]
    assert found(spark, {"traffic": rows[-24:], "depths": [], "deaths": []}, hours(50), 7) == {}
