"""Create, check and query the Delta tables of an output.

Bronze, the table `runs`, schemas and the report are written and read with delta-rs, which needs no Java; Spark reads
bronze and writes gold.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import quote

import pyarrow as pa
from deltalake import DeltaTable, Field, QueryBuilder, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from services.analytics import output as places
from services.analytics.hours import between
from services.analytics.spark.s3 import delta_rs_settings
from services.analytics.tables import Table


class TableError(Exception):
    """A table cannot be used by this version; the text says what to do."""


def path(output: str, table: Table) -> str:
    """Return the path of a table of the output, for Spark."""
    return places.spark_path(output, *table.folder, table.name)


def read(spark: SparkSession, output: str, table: Table) -> DataFrame:
    """Return the rows of a table."""
    return spark.read.format("delta").load(path(output, table))


def exists(output: str, table: Table) -> bool:
    """Return whether there is such a table, with a first commit. Raises TableError."""
    place, settings = _place(output, table)
    with _told(table, "read"):
        return DeltaTable.is_deltatable(place, storage_options=settings)


@contextmanager
def _told(table: Table, what: str) -> Iterator[None]:
    """Raise errors of delta-rs as TableError."""
    try:
        yield
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise TableError(f"the table {table.view} cannot be {what}: {places.in_one_line(error)}") from error


def opened(output: str, table: Table) -> DeltaTable:
    """Return the newest version of a table, without Spark. Raises TableError."""
    place, settings = _place(output, table)
    with _told(table, "read"):
        return DeltaTable(place, storage_options=settings)


@contextmanager
def changed(output: str, table: Table) -> Iterator[DeltaTable]:
    """Open a table that is to be changed without Spark. Raises TableError, also for what is done with it."""
    with _told(table, "changed"):
        yield opened(output, table)


def query(output: str, text: str, *tables: Table) -> pa.Table:
    """Return the result of SQL (DataFusion's) on tables of the output, by their names. Raises TableError."""
    builder = QueryBuilder()
    for table in tables:
        builder.register(table.view, opened(output, table))
    with _told(tables[0], "read"):
        found = pa.table(builder.execute(text))
    plain = [
        field.with_type(pa.string()) if field.type == pa.string_view() else field for field in found.schema
    ]
    return found.cast(pa.schema(plain))


def days_with_small_files(table: DeltaTable) -> list[str]:
    """Return the days with more than one file in a partition."""
    files = pa.table(table.get_add_actions(flatten=True))
    names = [name for name in files.column_names if name.startswith("partition.")]
    number = Counter(tuple(row.values()) for row in files.select(names).to_pylist())
    return sorted({key[names.index("partition.day")] for key, count in number.items() if count > 1})


def known_hours(output: str, tables: Sequence[Table], first: str, last: str) -> list[str]:
    """Return the hours from `first` to `last` with rows in any of the tables, in order. Raises TableError."""
    parts = " UNION ".join(
        f"SELECT concat(day, 'T', hour) AS at FROM {table.view} WHERE {between(first, last)}"
        for table in tables
    )
    return list(query(output, f"SELECT at FROM ({parts}) ORDER BY at", *tables)["at"].to_pylist())


def append(output: str, table: Table, rows: list[dict[str, object]]) -> None:
    """Append some rows to a table, without Spark. Raises TableError."""
    found = pa.Table.from_pylist(rows, to_arrow_schema(table.schema(), timezone="UTC"))
    with changed(output, table) as there:
        write_deltalake(there, found, mode="append")


def create(output: str, tables: Iterable[Table]) -> None:
    """Create missing tables, and add missing columns to older ones. Raises TableError.

    Two jobs may do so at the same time.
    """
    for table in tables:
        _create(output, table)


def _create(output: str, table: Table) -> None:
    if not exists(output, table):
        _create_empty(output, table)
    found = opened(output, table)
    there = StructType.fromJson(json.loads(found.schema().to_json()))
    _check(table, {each.name: each.dataType.simpleString() for each in there})
    missing = [each for each in table.schema() if each.name not in there.names]
    if missing:
        with _told(table, "changed"):
            found.alter.add_columns([Field.from_json(each.json()) for each in missing])


def _create_empty(output: str, table: Table) -> None:
    place, settings = _place(output, table)
    with _told(table, "created"), suppress(CommitFailedError):  # another job has created it
        DeltaTable.create(
            place,
            Schema.from_json(table.schema().json()),
            mode="ignore",
            partition_by=[*table.partitions],
            description=table.meaning,
            storage_options=settings,
        )


def _check(table: Table, there: dict[str, str]) -> None:
    known = {each.name: each.type.simpleString() for each in table.columns}
    if unknown := sorted({*there} - {*known}):
        raise TableError(
            f"the table {table.view} has columns that this version does not know: {', '.join(unknown)}; a newer "
            "version has written it: use that version, or another --output"
        )
    for name, found in there.items():
        if found != known[name]:
            raise TableError(
                f"the table {table.view}: column {name} has the type {found} instead of {known[name]}; use another "
                "--output; the folder of a gold table may also be removed, and a run with --recompute makes it again"
            )


def _place(output: str, table: Table) -> tuple[str, dict[str, str]]:
    """Return the place of a table for delta-rs, and the settings that its place needs."""
    place = path(output, table)
    if place.startswith("file://"):
        return place.removeprefix("file://"), {}
    return quote(place, safe=":/"), delta_rs_settings(os.environ)
