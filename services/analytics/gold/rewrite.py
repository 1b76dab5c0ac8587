"""Rewrite the hours of the gold tables that new rows of bronze touched."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from services.analytics import delta
from services.analytics.gold.changes import changes, weeks
from services.analytics.gold.deaths import deaths
from services.analytics.gold.depths import depths
from services.analytics.gold.edges import edges
from services.analytics.gold.failures import failures
from services.analytics.gold.origins import origins
from services.analytics.gold.redrives import redrives
from services.analytics.gold.repeats import repeats, without
from services.analytics.gold.traffic import traffic
from services.analytics.hours import condition, has_ended, hour_at, later
from services.analytics.spark.replacing import in_threads, replace_rows
from services.analytics.tables import (
    BRONZE,
    CHANGES,
    DEATHS,
    DEPTHS,
    EDGES,
    FAILURES,
    ORIGINS,
    REDRIVES,
    TRAFFIC,
    Table,
)
from services.redis_stream.schema import Kind

NEVER = "9999-12-31T23"
Rows = Callable[[], DataFrame]


@dataclass(frozen=True, slots=True)
class Scope:
    """What decides about the rows of the gold tables."""

    now_ms: int  # changes are computed of hours that have ended
    top: int = 50  # rows of a queue and hour in origins and failures
    objective: float = 0.999  # share of puts to be accepted
    week_days: int = 7  # history that changes are compared with
    report_hours: int = 24  # changes of the last hours are computed again
    first: str = ""  # hours before it are not rewritten: retention removes them


def rewrite(
    spark: Callable[[], SparkSession], output: str, touched: Mapping[Kind, Collection[str]], scope: Scope
) -> set[str]:
    """Compute the touched hours of all tables from bronze, and return these hours.

    A repetition writes the same rows. The tables must exist (`create`).

    Args:
        spark: returns the session; called if there are hours to compute.
        output: the folder with `bronze` and `gold`.
        touched: hours of new rows, 'YYYY-MM-DDTHH', by kind.
        scope: what decides about the rows.
    """
    hours = {
        Kind.DEAD: {*touched.get(Kind.DEAD, ())},
        # differences and repeats look back one hour
        Kind.SAMPLES: {later(hour, by) for hour in touched.get(Kind.SAMPLES, ()) for by in (0, 1)},
    }
    hours = {kind: {hour for hour in of if hour >= scope.first} for kind, of in hours.items()}
    gold = _Gold(spark, output)
    _write_hours(gold, hours, scope)
    every = hours[Kind.DEAD] | hours[Kind.SAMPLES]
    _write_derived(gold, every, scope)
    return every


class _Gold:
    """The tables of an output."""

    def __init__(self, spark: Callable[[], SparkSession], output: str) -> None:
        self._spark = spark
        self.output = output

    def bronze(self, kind: Kind, hours: set[str]) -> DataFrame:
        """Return the well rows of the hours."""
        rows = delta.read(self._spark(), self.output, BRONZE[kind])
        return rows.where(condition(hours)).where(F.col("problem").isNull())

    def read(self, table: Table, where: str) -> DataFrame:
        """Return rows of a gold table."""
        return delta.read(self._spark(), self.output, table).where(where)

    def write(self, table: Table, rows: Rows, hours: set[str]) -> None:
        """Replace the rows of the hours in one commit, one file a day.

        Whole days are replaced, with the rows that the other hours have: Delta then only exchanges files.
        """
        days = {hour[:10] for hour in hours}
        whole = "day IN (" + ", ".join(f"'{day}'" for day in sorted(days)) + ")"

        def by_day() -> DataFrame:
            others = self.read(table, f"{whole} AND NOT ({condition(hours)})")
            kept = rows().where(condition(hours)).unionByName(others)
            return kept.repartition(len(days), "day").sortWithinPartitions(*table.key_names())

        replace_rows(by_day, delta.path(self.output, table), whole)


def _write_hours(gold: _Gold, hours: Mapping[Kind, set[str]], scope: Scope) -> None:
    """Write the tables that are computed from bronze."""
    of_dead, of_samples = hours[Kind.DEAD], hours[Kind.SAMPLES]
    tables: dict[Table, tuple[Rows, set[str]]] = {}
    if of_samples:
        samples = gold.bronze(Kind.SAMPLES, of_samples | {later(hour, -1) for hour in of_samples})
        again = repeats(samples).persist()
        once = without(samples, again)
        tables[TRAFFIC] = lambda: traffic(once, scope.objective), of_samples
        tables[DEPTHS] = lambda: depths(samples), of_samples
        tables[EDGES] = lambda: edges(once), of_samples
    if of_dead:
        dead = gold.bronze(Kind.DEAD, of_dead)
        tables[FAILURES] = lambda: failures(dead, scope.top), of_dead
        tables[DEATHS] = lambda: deaths(dead), of_dead
        tables[ORIGINS] = lambda: origins(dead, scope.top), of_dead
    _write_all(gold, tables)
    if of_samples:
        again.unpersist()


def _write_derived(gold: _Gold, hours: set[str], scope: Scope) -> None:
    """Write the tables that are computed from other gold tables."""
    oldest = later(min(hours, default=hour_at(scope.now_ms)), 1 - scope.report_hours - 24 * scope.week_days)
    tables = (TRAFFIC, DEPTHS, DEATHS)
    known = delta.known_hours(gold.output, tables, f"{oldest[:10]}T00", NEVER)
    last = {later(known[-1], -number) for number in range(scope.report_hours)} if known else set()
    judged = sorted(hour for hour in hours | last if has_ended(hour, scope.now_ms))
    of_hours, since = condition(hours), f"day >= '{oldest[:10]}'"
    written: dict[Table, tuple[Rows, set[str]]] = {}
    # without enough history an hour has no changes, and had none before, as history only grows
    if weeks(judged, known, scope.week_days):
        week = (gold.read(TRAFFIC, since), gold.read(DEPTHS, since), gold.read(DEATHS, since))
        written[CHANGES] = lambda: changes(week, judged, known, scope.week_days), hours | {*judged}
    if hours:
        written[REDRIVES] = lambda: redrives(gold.read(DEATHS, of_hours), gold.read(DEPTHS, of_hours)), hours
    _write_all(gold, written)


def _write_all(gold: _Gold, tables: Mapping[Table, tuple[Rows, set[str]]]) -> None:
    in_threads(tables, lambda table: gold.write(table, *tables[table]))
