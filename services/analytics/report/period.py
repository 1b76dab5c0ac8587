"""Read the gold tables of a report's hours, summed by Spark as far as the report needs them.

Of tables with many rows for each queue and hour, only the first rows of the report's lists leave Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from services.analytics.hours import Span, later, span_of
from services.analytics.output import spark_path
from services.analytics.tables import COUNTERS, FAILURES, GOLD, SUMS
from services.store.model import CLASSES

HOUR = "at"  # column: the row's hour, 'YYYY-MM-DDTHH'
MOST = 20  # rows of a list in the report
OF_QUEUE = ("domain", "queue")
DEATH = (*OF_QUEUE, "reason", "edge")
ALIKE = tuple(each.name for each in FAILURES.keys)  # columns that similar failures share
CHANGE = (HOUR, *OF_QUEUE, "metric")
HOURS = ("day", "hour")
OLDEST = "0001-01-01T00"
TRAFFIC = (*SUMS, "refused_all", "refused_puts")
STATES = ("len_max", "oldest_ms_max")


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a span by name."""

    span: Span
    # summed over the hours, but edges and changes; `refused` is that of traffic, by reason
    rows: dict[str, pa.Table]
    by_hour: dict[str, pa.Table]  # traffic, depths and deaths summed over the queues, with the column HOUR
    lengths: dict[str, int] = field(default_factory=dict)  # rows of tables of which only the first are here


def read_tables(spark: SparkSession, output: str, now_hour: str, hours: int) -> Tables:
    """Read the tables of the last hours up to the newest one that any table has.

    Args:
        spark: A session with Delta.
        output: The output, with all gold tables.
        now_hour: The hour of the run; later hours have not begun and are left out.
        hours: Length of the period.
    """
    delta = spark.read.format("delta")
    gold = {table.name: delta.load(spark_path(output, "gold", table.name)) for table in GOLD}
    # every hour of the other tables is one of these
    span = find_span([gold[name] for name in ("traffic", "depths", "edges", "deaths")], now_hour, hours)
    inside = {name: _between(rows, span.first, span.last) for name, rows in gold.items()}
    traffic, depths, deaths = (inside[name] for name in ("traffic", "depths", "deaths"))
    refused = traffic.select(F.explode("refused").alias("reason", "count"))
    rows = {
        "traffic": _summed(traffic, OF_QUEUE, TRAFFIC, histograms=("put", "wait")),
        "refused": _summed(refused, ["reason"], ["count"]),
        "depths": _summed(depths, OF_QUEUE, COUNTERS, STATES),
        "edges": inside["edges"],
        "deaths": _summed(deaths, DEATH, ("count", "octets", "redriven"), histograms=["age"]),
        "redrives": _summed(inside["redrives"], OF_QUEUE, ("redriven", "died_again")),
    }
    by_hour = {
        "traffic": _with_hour(_summed(traffic, HOURS, TRAFFIC)),
        "depths": _with_hour(_summed(depths, HOURS, COUNTERS)),
        "deaths": _with_hour(_summed(deaths, HOURS, ["count"])),
    }
    changes = _with_hour(inside["changes"])
    first = {
        "origins": _first(_summed(inside["origins"], ["origin"], ["count"]), F.col("count"), ["origin"]),
        "failures": _failures(inside["failures"]),
        "changes": _first(changes, F.abs("z"), CHANGE),
    }
    return Tables(
        span,
        {name: each.toArrow() for name, each in rows.items()}
        | {name: top for name, (top, _) in first.items()},
        {name: each.toArrow() for name, each in by_hour.items()},
        {name: length for name, (_, length) in first.items()},
    )


def find_span(tables: Iterable[DataFrame], now_hour: str, hours: int) -> Span:
    """Return the last hours up to the newest one that any table has, and that is not after `now_hour`."""
    for first in (later(now_hour, -2 * hours), OLDEST):  # of an output in use only the last days are read
        parts = [_between(rows, first, now_hour).select(*HOURS).distinct() for rows in tables]
        found = {f"{row.day}T{row.hour}" for row in reduce(DataFrame.union, parts).distinct().collect()}
        if found and later(max(found), 1 - hours) >= first:
            break
    return span_of(found, hours)


def _between(rows: DataFrame, first: str, last: str) -> DataFrame:
    """Return the rows of the hours from `first` to `last`. Files of other days are not read."""
    day, hour = F.col("day"), F.col("hour")
    begun = (day > first[:10]) | (hour >= first[11:])
    ended = (day < last[:10]) | (hour <= last[11:])
    return rows.where(day.between(first[:10], last[:10]) & begun & ended)


def _with_hour(rows: DataFrame) -> DataFrame:
    return rows.withColumn(HOUR, F.concat_ws("T", *HOURS))


def _summed(
    rows: DataFrame,
    keys: Sequence[str],
    sums: Iterable[str],
    greatest: Iterable[str] = (),
    histograms: Iterable[str] = (),
) -> DataFrame:
    """Return a row for each key."""
    return rows.groupBy(*keys).agg(
        *(F.sum(name).alias(name) for name in sums),
        *(F.max(name).alias(name) for name in greatest),
        *(
            F.array(*(F.sum(F.get(name, F.lit(n))) for n in range(CLASSES))).alias(name)
            for name in histograms
        ),
    )


def _failures(rows: DataFrame) -> tuple[pa.Table, int]:
    """Return the most frequent groups of similar failures, and the number of all groups.

    Only the sums are computed of all groups, as there may be very many.
    """
    top, length = _first(_summed(rows, ALIKE, ["count"]), F.col("count"), ALIKE)
    groups = F.broadcast(rows.sparkSession.createDataFrame(top.select(ALIKE)))
    found = rows.join(groups, [*ALIKE], "left_semi").groupBy(*ALIKE)
    whole = found.agg(
        F.sum("count").alias("count"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.min_by(F.struct("example_id", "example"), F.struct("first", "example_id")).alias("oldest"),
    )
    return whole.select(*ALIKE, "count", "first", "last", "oldest.*").toArrow(), length


def _first(rows: DataFrame, size: Column, keys: Sequence[str]) -> tuple[pa.Table, int]:
    """Return the greatest rows, ties in order of the keys, and the number of all rows."""
    rows.persist()
    try:
        return rows.orderBy(size.desc(), *keys).limit(MOST).toArrow(), rows.count()
    finally:
        rows.unpersist()
