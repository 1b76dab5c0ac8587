"""Compare the table `changes` with plain Python (docs/analytics.md, "changes")."""

from __future__ import annotations

import random
from math import sqrt
from statistics import median
from typing import Any

import pyarrow as pa
import pytest

from services.analytics.aggregates.changes import changes, figures
from services.analytics.hours import later
from services.analytics.table_files import HOUR

LAST = "2026-11-20T05"
QUEUES = ("a", "b", "c")
COUNTS = {"in": "in", "out": "out", "refused": "refused_all", "deaths": "count"}
LEVELS = {"len_max": "len_max", "put_p99": "put_p99", "wait_p99": "wait_p99"}
Rows = list[dict[str, Any]]
Key = tuple[str, str, str]


def hours(number: int) -> list[str]:
    return [later(LAST, at - number + 1) for at in range(number)]


def some_rows(chance: random.Random, number: int, missing: float) -> dict[str, Rows]:
    """Return rows of each table; two edges share a queue's traffic. Some hours are sudden, some unknown."""
    told: dict[str, Rows] = {"traffic": [], "depths": [], "deaths": []}
    for hour in hours(number):
        sudden = 9 if hour == LAST else chance.choice((1, 1, 0, 9)) if hour >= later(LAST, -3) else 1
        for queue in QUEUES:
            own = {HOUR: hour, "domain": "main", "queue": queue}
            for _ in range(chance.choice((1, 2)) if chance.random() > missing else 0):
                counts = {name: chance.randrange(90, 110) * sudden for name in ("in", "out")}
                late = {name: chance.choice((None, 0.01 * sudden)) for name in ("put_p99", "wait_p99")}
                told["traffic"].append(own | counts | late | {"refused_all": chance.randrange(3) * sudden})
            if chance.random() > missing:
                told["depths"].append({**own, "len_max": chance.randrange(40, 44) * sudden})
            for _ in range(chance.choice((0, 0, 1)) * sudden):
                told["deaths"].append({**own, "count": chance.randrange(1, 30)})
    return told


def tables(told: dict[str, Rows]) -> list[pa.Table]:
    text, own = pa.string(), [HOUR, "domain", "queue"]
    kinds = {**dict.fromkeys(own, text), **dict.fromkeys(("put_p99", "wait_p99"), pa.float64())}
    names = {
        "traffic": (*own, "in", "out", "refused_all", "put_p99", "wait_p99"),
        "depths": (*own, "len_max"),
        "deaths": (*own, "count"),
    }
    schemas = {
        name: pa.schema([(each, kinds.get(each, pa.int64())) for each in columns])
        for name, columns in names.items()
    }
    return [pa.Table.from_pylist(told[name], schema=schema) for name, schema in schemas.items()]


def series(told: dict[str, Rows], metric: str, queue: str) -> dict[str, float]:
    """Return the known values by hour."""
    column = {**COUNTS, **LEVELS}[metric]
    rows = told["deaths" if metric == "deaths" else "depths" if metric == "len_max" else "traffic"]
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["queue"] == queue and row[column] is not None:
            found.setdefault(row[HOUR], []).append(row[column])
    return {hour: sum(each) if metric in COUNTS else max(each) for hour, each in found.items()}


def judged(
    told: dict[str, Rows], metric: str, queue: str, hour: str, week_days: int
) -> dict[str, Any] | None:
    known = sorted({row[HOUR] for rows in told.values() for row in rows})
    week = [each for each in known if later(hour, -24 * week_days) <= each < hour]
    values = series(told, metric, queue)
    if hour not in known or len(week) < 24 or not values:
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
    told_of = {"value": value, "week_median": middle, "week_spread": spread, "z": z, "week_hours": len(week)}
    return {name: pytest.approx(each, rel=1e-12) for name, each in told_of.items()} | {
        "verdict": "up" if z > 0 else "down"
    }


def found(told: dict[str, Rows], of: list[str], week_days: int) -> dict[str, dict[Key, dict[str, Any]]]:
    answer: dict[str, dict[Key, dict[str, Any]]] = {}
    for hour, table in changes(figures(*tables(told)), of, week_days):
        rows = table.to_pylist()
        answer[hour] = {tuple(row.pop(name) for name in ("domain", "queue", "metric")): row for row in rows}
        assert len(answer[hour]) == len(rows) > 0
    return answer


@pytest.mark.parametrize(("number", "week_days", "missing"), [(60, 7, 0.0), (200, 7, 0.3), (60, 1, 0.02)])
def test_they_are_what_plain_python_finds(
    chance: random.Random, number: int, week_days: int, missing: float
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
    assert found(told, of, week_days) == {hour: rows for hour, rows in wanted.items() if rows}


def test_what_is_steady_is_not_among_them(chance: random.Random) -> None:
    """Check that steady values, and those with less than a day of history, are no changes."""
    rows = [
        {HOUR: hour, "domain": "main", "queue": "a", "in": chance.randrange(90, 110), "out": 100}
        | {"refused_all": 0, "put_p99": 0.01, "wait_p99": 0.01}
        for hour in hours(100)
    ]
    assert found({"traffic": rows, "depths": [], "deaths": []}, hours(50), 7) == {}
    rows[-1]["in"] = 5000
    assert list(found({"traffic": rows, "depths": [], "deaths": []}, hours(50), 7)) == [LAST]
    assert found({"traffic": rows[-24:], "depths": [], "deaths": []}, hours(50), 7) == {}
