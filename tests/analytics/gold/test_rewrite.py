"""Test what is written: that hours are replaced, that a repetition changes nothing, and what tables may look like."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from services.analytics.delta import TableError, create, path
from services.analytics.gold.rewrite import Scope, rewrite
from services.analytics.tables import CHANGES, DEATHS, DEPTHS, GOLD, ORIGINS, TRAFFIC, Table
from services.redis_stream.schema import Kind
from tests.analytics.gold.rows import BEGIN_MS, HOUR_MS, Row, bronze, ids, letter, looked, worked

HOURS = [f"2026-11-24T{hour:02d}" for hour in (2, 3, 4, 5)]
SCOPE = Scope(now_ms=BEGIN_MS + 10 * HOUR_MS, first="2026-11-24T03")


def append(spark: SparkSession, output: str, kind: Kind, *rows: Row) -> None:
    frame = bronze(spark, kind, rows).coalesce(1)
    frame.write.format("delta").mode("append").partitionBy("day", "hour").save(f"{output}/bronze/{kind}")


def read(spark: SparkSession, output: str, table: Table) -> list[Row]:
    rows = spark.read.format("delta").load(path(output, table)).toArrow().to_pylist()
    return sorted(rows, key=lambda row: [*map(row.get, table.key_names())])


def by_hour(rows: list[Row], name: str) -> dict[str, Any]:
    return {row["hour"]: row[name] for row in rows}


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An output whose tables two jobs created at the same time."""
    found = str(tmp_path_factory.mktemp("it's an output"))
    with ThreadPoolExecutor(2) as jobs:
        for each in [jobs.submit(create, found, GOLD) for _ in range(2)]:
            each.result()
    return found


def test_tables_have_their_columns_and_comments(spark: SparkSession, output: str) -> None:
    for table in GOLD:
        schema = spark.read.format("delta").load(path(output, table)).schema
        assert [(each.name, each.dataType.simpleString(), each.metadata["comment"]) for each in schema] == [
            (each.name, each.type.simpleString(), each.meaning) for each in table.columns
        ]
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{path(output, TRAFFIC)}`").collect()[0]
    assert (detail["description"], detail["partitionColumns"]) == (TRAFFIC.meaning, ["day"])


def test_hours_are_replaced(spark: SparkSession, output: str) -> None:
    """Check that late rows change their hour and the next one, and no other."""
    repeated = worked(HOUR_MS + 5, "a", n=7, **{"in": 5})
    append(
        spark,
        output,
        Kind.SAMPLES,
        *(looked(at * HOUR_MS - 1, added=10 * at, domain="main") for at in range(1, 4)),
        repeated,
        {"problem": "unreadable", "kind": "depth", **looked(5, "broken")},
    )
    append(spark, output, Kind.DEAD, letter(-1), letter(0), letter(2 * HOUR_MS))
    touched = {Kind.DEAD: {*HOURS[:2], HOURS[3]}, Kind.SAMPLES: {*HOURS[:4]}}
    rewrite(lambda: spark, output, touched, SCOPE)
    assert by_hour(read(spark, output, DEATHS), "count") == {"03": 1, "05": 1}  # 02 is older than `first`
    assert by_hour(read(spark, output, DEPTHS), "added") == {"03": 0, "04": 10, "05": 10}
    assert by_hour(read(spark, output, TRAFFIC), "in") == {"04": 5}

    first = {**repeated, **worked(HOUR_MS - 5, "a", n=7, **{"in": 6})}
    append(spark, output, Kind.SAMPLES, first, looked(HOUR_MS - 2, added=4, len=9))
    append(spark, output, Kind.DEAD, letter(7, origin="late"))
    for _ in range(2):
        rewrite(lambda: spark, output, {Kind.DEAD: {HOURS[1]}, Kind.SAMPLES: {HOURS[1]}}, SCOPE)
        assert by_hour(read(spark, output, DEATHS), "count") == {"03": 2, "05": 1}
        assert by_hour(read(spark, output, DEPTHS), "added") == {"03": 6, "04": 10, "05": 10}
        assert by_hour(read(spark, output, DEPTHS), "len_max") == {"03": 9, "04": 1, "05": 1}
        assert by_hour(read(spark, output, TRAFFIC), "in") == {"03": 6}  # the one of 04 is a repeat now
        assert len(read(spark, output, ORIGINS)) == 3
        assert read(spark, output, CHANGES) == []


def test_a_sudden_change_is_judged_against_the_hours_before(spark: SparkSession, tmp_path: Path) -> None:
    output, hours = str(tmp_path), 26
    create(output, GOLD)
    usual = [letter(-number * HOUR_MS, id=ids(-number * HOUR_MS)) for number in range(1, hours)]
    sudden = [letter(0, id=ids(0, number)) for number in range(40)]
    append(spark, output, Kind.DEAD, *usual, *sudden)
    touched = {row["died"].strftime("%Y-%m-%dT%H") for row in (*usual, *sudden)}
    rewrite(lambda: spark, output, {Kind.DEAD: touched}, Scope(now_ms=BEGIN_MS + HOUR_MS))
    (found,) = read(spark, output, CHANGES)
    assert (found["hour"], found["metric"], found["value"], found["verdict"]) == ("03", "deaths", 40, "up")
    assert (found["week_hours"], found["week_median"]) == (hours - 1, 1)


def test_nothing_touched_writes_nothing(spark: SparkSession, output: str) -> None:
    assert rewrite(lambda: spark, output, {}, SCOPE) == set()
    assert rewrite(lambda: spark, output, {Kind.DEAD: {HOURS[0]}}, SCOPE) == set()


def test_a_missing_column_is_added(spark: SparkSession, tmp_path: Path) -> None:
    place = path(str(tmp_path), ORIGINS)
    spark.sql(
        f"CREATE TABLE delta.`{place}` (day string, hour string, domain string, queue string, origin string) "
        "USING DELTA PARTITIONED BY (day)"
    )
    create(str(tmp_path), [ORIGINS])
    assert spark.read.format("delta").load(place).schema["count"].metadata["comment"] == "dead letters"


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ("day string, newer bigint", "does not know: newer; a newer version"),
        ("day string, count string", "column count has the type string instead of bigint; use"),
    ],
)
def test_another_table_is_refused(spark: SparkSession, tmp_path: Path, columns: str, text: str) -> None:
    place = path(str(tmp_path), ORIGINS)
    spark.sql(f"CREATE TABLE delta.`{place}` ({columns}) USING DELTA PARTITIONED BY (day)")
    with pytest.raises(TableError, match=text):
        create(str(tmp_path), [ORIGINS])
