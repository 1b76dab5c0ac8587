"""Test how the gold tables of a period are read and summed by Spark."""

from __future__ import annotations

import random
from collections.abc import Callable

from pyspark.sql import SparkSession

from services.analytics.hours import Span, later
from services.analytics.report.figures import make
from services.analytics.report.period import ALIKE, MOST, find_span, read_tables
from tests.analytics.report.conftest import Write
from tests.analytics.report.rows import hour, some, tables
from tests.analytics.report.test_figures import OF

NOW = hour(0)


def test_sums_of_spark_give_the_report_of_all_rows(spark: SparkSession, gold: Write) -> None:
    """Check that Spark sums and shortens the tables without changing the report."""
    names = tuple(f"name {number}" for number in range(7))
    rows = some(random.Random(5), 30, names)
    found = read_tables(spark, gold(rows), NOW, 24)
    failures = tables(rows, 24).rows["failures"].select(ALIKE).to_pylist()
    groups = {tuple(row.values()) for row in failures}
    assert found.lengths == {"origins": 7, "failures": len(groups), "changes": 7 * 24}
    assert [len(found.rows[name]) for name in ("failures", "changes", "traffic")] == [MOST, MOST, 7 * 2]
    assert [len(found.by_hour[name]) for name in ("traffic", "depths", "deaths")] == [24, 24, 24]
    assert make(found, OF) == make(tables(rows, 24), OF)
    assert make(read_tables(spark, gold({}), later(NOW, -40), 2), OF) == make(tables({}, 2), OF)


def spans(spark: SparkSession, *backs: int) -> Callable[[str, int], Span]:
    """Return a function that finds the span of two tables with rows in these hours, counted from NOW."""
    rows = [(hour(back)[:10], hour(back)[11:]) for back in backs]
    tables = [spark.createDataFrame(part, "day string, hour string") for part in (rows[::2], rows[1::2])]
    return lambda now_hour, hours: find_span(tables, now_hour, hours)


def test_hour_that_has_not_begun_is_left_out(spark: SparkSession) -> None:
    """Check that the hour of a letter ahead of the store's clock counts only once it has begun."""
    find = spans(spark, 24, 23, 0, -1, -9)
    assert find(NOW, 24) == Span(hour(23), NOW, 24, (hour(23), NOW))
    assert find(hour(30), 24) == Span("", "", 24)


def test_period_ends_with_the_newest_hour_however_old(spark: SparkSession) -> None:
    assert spans(spark, 2000, 2001, 2030)(NOW, 24).known == (hour(2001), hour(2000))
    find = spans(spark, 2000, 50, 40, 30)
    assert find(NOW, 24).known == (hour(50), hour(40), hour(30))
    assert find(NOW, 10).known == (hour(30),)
    assert find(NOW, 168).known == (hour(50), hour(40), hour(30))
