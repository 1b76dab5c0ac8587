"""Query the tables of an output with SQL."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import click
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType

from services.analytics import delta
from services.analytics.tables import ALL, Table

MOST_SHOWN = 1000  # rows of a table in a terminal; csv and json have all


def register(spark: SparkSession, output: str) -> list[Table]:
    """Register every table of the output as a temporary view, and return those that exist.

    Bronze tables are `dead` and `samples` without unreadable rows, these are `quarantine_dead` and
    `quarantine_samples`; gold tables and `runs` have their names.
    """
    found = []
    for table in ALL:
        if delta.exists(output, table):
            rows = delta.read(spark, output, table)
            if table.folder == ("bronze",):
                rows = rows.where("problem IS NULL")
            rows.createOrReplaceTempView(table.view)
            found.append(table)
    return found


def show(rows: DataFrame, form: str) -> None:
    """Print rows as `table`, `csv` or `json` (one object a line)."""
    if form == "table":
        _show_table(rows)
    elif form == "csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(_flat(rows).toArrow(), sys.stdout.buffer)
    else:
        for line in _lines(rows):
            click.echo(line)


def _flat(rows: DataFrame) -> DataFrame:
    """Return the rows with lists and maps as JSON."""
    nested = (ArrayType, MapType, StructType)
    columns = [
        F.to_json(each.name) if isinstance(each.dataType, nested) else F.col(each.name)
        for each in rows.schema
    ]
    return rows.select([column.alias(name) for column, name in zip(columns, rows.columns, strict=True)])


def _show_table(rows: DataFrame) -> None:
    number = rows.limit(MOST_SHOWN + 1).count()
    rows.show(MOST_SHOWN, truncate=False)
    if number > MOST_SHOWN:
        text = f"only the first {MOST_SHOWN} rows are shown; use LIMIT, or --format csv for all"
        click.echo(text, err=True)


def _lines(rows: DataFrame) -> Iterator[str]:
    for row in rows.toLocalIterator(prefetchPartitions=True):
        yield json.dumps(row.asDict(recursive=True), default=str, ensure_ascii=False)
