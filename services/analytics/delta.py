"""Create, check and rewrite the Delta tables of an output."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from services.analytics import output as places
from services.analytics.tables import Table

TRIES = 5  # of a write that collides with that of another job
CONFLICT = "DELTA_CONCURRENT"  # in errors of Delta
PROTOCOL_CHANGED = "DELTA_PROTOCOL_CHANGED"  # two jobs created the same table
T = TypeVar("T")


class TableError(Exception):
    """A table is not as this version knows it; the text says what to do."""


def path(output: str, table: Table) -> str:
    """Return the path of a table of the output, for Spark."""
    return places.spark_path(output, *table.folder, table.name)


def exists(spark: SparkSession, place: str) -> bool:
    """Return whether there is a Delta table."""
    tables = spark.sparkContext._jvm.io.delta.tables.DeltaTable  # type: ignore[union-attr]  # noqa: SLF001 - only `delta-spark` for Python has it otherwise
    return bool(tables.isDeltaTable(spark._jsparkSession, place))  # noqa: SLF001


def ensure(spark: SparkSession, output: str, table: Table) -> None:
    """Create a table, or check that the existing one has the columns of this version and add those that it lacks.

    Raises TableError.
    """
    place = path(output, table)
    if not exists(spark, place):
        retried(lambda: _create(spark, place, table))
        return
    there = {field.name: field.dataType.simpleString() for field in spark.read.format("delta").load(place).schema}
    wanted = {field.name: field.dataType.simpleString() for field in table.schema()}
    other = [name for name, kind in there.items() if wanted.get(name) != kind]
    if other:
        raise TableError(
            f"the table {table.view} has the column {other[0]} {there[other[0]]}, which this version does not know: it "
            "was written by a newer version, or changed by hand; run that version, or give another --output"
        )
    for column in (each for each in table.columns if each.name not in there):
        add = f"ALTER TABLE delta.`{place}` ADD COLUMNS ({_definition(table, column.name)})"
        retried(lambda statement=add: spark.sql(statement))


def _create(spark: SparkSession, place: str, table: Table) -> None:
    columns = ", ".join(_definition(table, each.name) for each in table.columns)
    partitions = f"PARTITIONED BY ({', '.join(table.partitions)})" if table.partitions else ""
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS delta.`{place}` ({columns}) USING delta {partitions} COMMENT {_text(table.meaning)}"
    )


def _definition(table: Table, name: str) -> str:
    column = next(each for each in table.columns if each.name == name)
    return f"`{column.name}` {column.type} COMMENT {_text(column.meaning)}"


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def of_hours(hours: Iterable[str]) -> str:
    """Return the SQL condition of some hours, 'YYYY-MM-DDTHH' each."""
    days: dict[str, list[str]] = defaultdict(list)
    for each in sorted(hours):
        days[each[:10]].append(each[11:])
    found = (f"(day = '{day}' AND hour IN ({_listed(own)}))" for day, own in days.items())
    return " OR ".join(found) or "false"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def replace(rows: DataFrame, place: str, where: str) -> None:
    """Replace the rows of a table that satisfy a condition, in one transaction."""
    writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", where)
    retried(lambda: writer.save(place))


def retried(work: Callable[[], T]) -> T:
    """Return the result of a write that is repeated if another job changed the table at the same time."""
    for left in range(TRIES - 1, -1, -1):
        try:
            return work()
        except (PySparkException, Py4JError) as error:
            text = str(error)
            if not left or (CONFLICT not in text and PROTOCOL_CHANGED not in text):
                raise
            time.sleep(random.uniform(0.1, 1.0))
    raise AssertionError("unreachable")
