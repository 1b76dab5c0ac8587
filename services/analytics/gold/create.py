"""Create the gold tables, and check those that exist."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from services.analytics.tables import AGGREGATES, Column, Table

THREADS = 4  # statements at a time: most of their time is latency
TRIES = 5  # of a statement that collides with another job
PAUSE_S = 0.5  # before the second try; doubled before each further one
COLLISIONS = ("DELTA_CONCURRENT_", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
Result = TypeVar("Result")


class TableError(Exception):
    """A gold table is not one of this version; the text says what to do."""


def create(spark: SparkSession, output: str) -> None:
    """Create missing gold tables, and add missing columns to older ones. Raises TableError.

    Two jobs may do so at the same time.
    """
    in_threads(AGGREGATES, lambda table: retried(lambda: _create(spark, output, table)))


def table_path(output: str, table: Table) -> str:
    """Return the path of a gold table."""
    return f"{output.rstrip('/')}/gold/{table.name}"


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


def _create(spark: SparkSession, output: str, table: Table) -> None:
    name = f"delta.{_quoted(table_path(output, table))}"
    columns = ", ".join(map(_column, table.columns))
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING DELTA PARTITIONED BY (day) "
        f"COMMENT {_text(table.meaning)}"
    )
    there = {each.name: each.dataType.simpleString() for each in spark.table(name).schema}
    _check(table, there, table_path(output, table))
    missing = [each for each in table.columns if each.name not in there]
    if missing:
        spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({', '.join(map(_column, missing))})")


def _check(table: Table, there: dict[str, str], path: str) -> None:
    known = {each.name: each.type for each in table.columns}
    if unknown := sorted({*there} - {*known}):
        raise TableError(
            f"{path} has columns that this version does not know: {', '.join(unknown)}; a newer version has written "
            "it: use that version, or another output"
        )
    for name, found in there.items():
        if found != known[name]:
            raise TableError(
                f"{path}: column {name} has the type {found} instead of {known[name]}; move the folder away, so that "
                "the table is made again, or use another output"
            )


def _column(column: Column) -> str:
    return f"{_quoted(column.name)} {column.type} COMMENT {_text(column.meaning)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
