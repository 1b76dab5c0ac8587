"""Create, check and rewrite the Delta tables of an output."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from services.analytics import output as places
from services.analytics.tables import Column, Table

THREADS = 4  # statements at a time: most of their time is latency
TRIES = 5  # of a statement that collides with another job
PAUSE_S = 0.5  # before the second try; doubled before each further one
COLLISIONS = ("DELTA_CONCURRENT_", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
Result = TypeVar("Result")


class TableError(Exception):
    """A table is not one of this version; the text says what to do."""


def path(output: str, table: Table) -> str:
    """Return the path of a table of the output, for Spark."""
    return places.spark_path(output, *table.folder, table.name)


def read(spark: SparkSession, output: str, table: Table) -> DataFrame:
    """Return the rows of a table."""
    return spark.read.format("delta").load(path(output, table))


def exists(output: str, table: Table) -> bool:
    """Return whether there is such a table."""
    return places.exists(output, "/".join((*table.folder, table.name, "_delta_log")))


def create(spark: SparkSession, output: str, tables: Iterable[Table]) -> None:
    """Create missing tables, and add missing columns to older ones. Raises TableError.

    Two jobs may do so at the same time.
    """
    in_threads(tables, lambda table: retried(lambda: _create(spark, output, table)))


def _create(spark: SparkSession, output: str, table: Table) -> None:
    name = f"delta.{_quoted(path(output, table))}"
    if not exists(output, table):
        columns = ", ".join(map(_column, table.columns))
        partitions = f"PARTITIONED BY ({', '.join(table.partitions)})" if table.partitions else ""
        text = f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING DELTA {partitions}"
        spark.sql(f"{text} COMMENT {_text(table.meaning)}")
    there = {each.name: each.dataType.simpleString() for each in spark.table(name).schema}
    _check(table, there)
    if missing := [each for each in table.columns if each.name not in there]:
        spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({', '.join(map(_column, missing))})")


def _check(table: Table, there: dict[str, str]) -> None:
    known = {each.name: each.type for each in table.columns}
    if unknown := sorted({*there} - {*known}):
        raise TableError(
            f"the table {table.view} has columns that this version does not know: {', '.join(unknown)}; a newer "
            "version has written it: use that version, or another --output"
        )
    for name, found in there.items():
        if found != known[name]:
            raise TableError(
                f"the table {table.view}: column {name} has the type {found} instead of {known[name]}; move its folder "
                "away, so that the table is made again, or use another --output"
            )


def _column(column: Column) -> str:
    return f"{_quoted(column.name)} {column.type} COMMENT {_text(column.meaning)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def replace(rows: DataFrame, place: str, where: str) -> None:
    """Replace the rows of a table that satisfy a condition, in one commit."""
    rows.write.format("delta").mode("overwrite").option("replaceWhere", where).save(place)


def in_threads(tables: Iterable[Table], work: Callable[[Table], None]) -> None:
    """Do the work for some tables at a time; the first error is raised when all have ended."""
    with ThreadPoolExecutor(THREADS) as threads:
        for each in [threads.submit(work, table) for table in tables]:
            each.result()


def retried(work: Callable[[], Result]) -> Result:
    """Return the result of the work; after a collision with another job it is repeated."""
    for number in range(TRIES - 1):
        try:
            return work()
        except (PySparkException, Py4JJavaError) as error:
            if not any(each in str(error) for each in COLLISIONS):
                raise
            # two jobs that collided do not meet again
            time.sleep(PAUSE_S * 2**number * random.uniform(0.5, 1.5))
    return work()
