"""Test how the gold tables of a period are read and summed by Spark."""

from __future__ import annotations

import random

from pyspark.sql import SparkSession

from services.analytics.hours import later
from services.analytics.report.figures import make
from services.analytics.report.period import ALIKE, MOST, read_tables
from tests.analytics.report.conftest import Write
from tests.analytics.report.rows import Rows, hour, some, tables
from tests.analytics.report.test_figures import OF

NOW = hour(0)


def of(hours: list[str]) -> Rows:
    """Return a dead letter in each hour."""
    (row,) = some(random.Random(1), 1, ("a",)).values()
    return {each: {"deaths": row["deaths"][:1]} for each in hours}


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
    fewer = {each: row for each, row in rows.items() if each <= later(NOW, -3)}
    assert make(read_tables(spark, gold({}), later(NOW, -3), 2), OF) == make(tables(fewer, 2), OF)


def test_hour_that_has_not_begun_is_left_out(spark: SparkSession, gold: Write) -> None:
    """Check that the hour of a letter ahead of the store's clock counts only once it has begun."""
    output = gold(of([later(NOW, by) for by in (-24, -23, 0, 1, 9)]))
    span = read_tables(spark, output, NOW, 24).span
    assert (span.first, span.last, span.known) == (later(NOW, -23), NOW, (later(NOW, -23), NOW))
    assert read_tables(spark, output, later(NOW, -30), 24).span.last == ""


def test_period_ends_with_the_newest_hour_however_old(spark: SparkSession, gold: Write) -> None:
    old = [later(NOW, by) for by in (-2000, -2001, -2030)]
    output = gold(of(old))
    found = read_tables(spark, output, NOW, 24)
    assert (found.span.last, found.span.known) == (old[0], (old[1], old[0]))
    assert make(found, OF).totals.dead == make(tables(of(old), 24), OF).totals.dead
    gold(of([later(NOW, -30)]))
    assert read_tables(spark, output, NOW, 24).span.known == (later(NOW, -30),)
    assert read_tables(spark, output, NOW, 31).span.known == (later(NOW, -30),)


def test_empty_tables_give_an_empty_report(spark: SparkSession, gold: Write) -> None:
    found = make(read_tables(spark, gold({}), NOW, 24), OF)
    assert found == make(tables({}, 24), OF)
