"""Compute gold tables from the files of bronze by Spark, DuckDB and Polars.

An answer is an Arrow table with sorted rows in the types of the gold table: all answers must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from benchmarks.analytics.bench import TWO
from services.analytics import delta
from services.analytics.gold.deaths import deaths
from services.analytics.tables import AGE_S, BRONZE, DEATHS, SUMS, TRAFFIC, Table
from services.redis_stream.schema import Kind

BOUNDS_MS = [round(bound * 1000) for bound in AGE_S]
BUCKETS = range(len(AGE_S) + 1)
DIGITS = 6  # decimals of a mean
HIVE = "hive_partitioning = true, hive_types_autocast = false"  # hours are texts
COUNTED = ("count", "octets", "age", "acquired_mean", "redriven")
LETTERS = "SELECT *, {} AS bucket FROM bronze WHERE problem IS NULL".format(
    " + ".join(f"CAST(epoch_ms(died) - epoch_ms(enqueued) > {bound} AS INTEGER)" for bound in BOUNDS_MS)
)
DUCKDB_DEATHS = f"""
SELECT {{keys}}, count(*) AS count, sum(size) AS octets, avg(acquired) AS acquired_mean,
  count(*) FILTER (WHERE redriven > 0) AS redriven,
  [{", ".join(f"count(*) FILTER (WHERE bucket = {at})" for at in BUCKETS)}] AS age
FROM ({LETTERS}) GROUP BY {{keys}}
"""
DUCKDB_TRAFFIC = f"""
SELECT {{keys}}, {", ".join(f'sum("{name}") AS "{name}"' for name in SUMS)}
FROM bronze WHERE problem IS NULL AND kind = 'queue' GROUP BY {{keys}}
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A gold table, or some columns of it, as each engine computes it from bronze."""

    table: Table
    columns: Sequence[str]  # beside the keys
    kind: Kind
    spark: Callable[[DataFrame], DataFrame]
    duckdb: str
    polars: Callable[[pl.LazyFrame], pl.LazyFrame]

    def gold(self, output: Path) -> pa.Table:
        """Return the answer as it is in the gold table."""
        return self._plain(_opened(output, self.table).to_pyarrow_table())

    def by_spark(self, spark: SparkSession, output: Path) -> pa.Table:
        return self._plain(self.spark(delta.read(spark, str(output), BRONZE[self.kind])).toArrow())

    def by_duckdb(self, output: Path) -> pa.Table:
        files = _opened(output, BRONZE[self.kind]).file_uris()
        keys = ", ".join(self.table.key_names())
        with duckdb.connect(config={"threads": TWO}) as connection:
            connection.sql(f"CREATE VIEW bronze AS FROM read_parquet({files}, {HIVE})")
            return self._plain(connection.sql(self.duckdb.format(keys=keys)).to_arrow_table())

    def by_polars(self, output: Path) -> pa.Table:
        rows = pl.scan_delta(_opened(output, BRONZE[self.kind])).filter(pl.col("problem").is_null())
        return self._plain(self.polars(rows).collect(engine="streaming").to_arrow())

    def _plain(self, answer: pa.Table) -> pa.Table:
        """Return the columns in the types of the gold table, in order of the keys, with rounded means."""
        keys = self.table.key_names()
        types = to_arrow_schema(self.table.schema(), timezone="UTC")
        columns = {name: answer[name].cast(types.field(name).type) for name in (*keys, *self.columns)}
        for name, column in columns.items():
            if pa.types.is_floating(column.type):
                columns[name] = pc.round(column, DIGITS)
        return pa.table(columns).sort_by([(name, "ascending") for name in keys]).combine_chunks()


def check(found: pa.Table, gold: pa.Table, name: str) -> None:
    """Raise OSError with the first difference if the tables differ."""
    if found.equals(gold):
        return
    pairs = zip(found.to_pylist(), gold.to_pylist(), strict=False)
    rows = f"{len(found)} rows are not {len(gold)}"
    raise OSError(f"{name}: {next((f'{a} is not {b}' for a, b in pairs if a != b), rows)}")


def _opened(output: Path, table: Table) -> DeltaTable:
    return delta.opened(str(output), table)


def _spark_deaths(bronze: DataFrame) -> DataFrame:
    return deaths(bronze.where(F.col("problem").isNull()))


def _spark_traffic(bronze: DataFrame) -> DataFrame:
    rows = bronze.where(F.col("problem").isNull()).where(F.col("kind") == "queue")
    return rows.groupBy(*TRAFFIC.key_names()).agg(*(F.sum(name).alias(name) for name in SUMS))


def _polars_deaths(bronze: pl.LazyFrame) -> pl.LazyFrame:
    ms: Any = (pl.col("died") - pl.col("enqueued")).dt.total_milliseconds()
    bucket = pl.sum_horizontal((ms > bound).cast(pl.UInt8) for bound in BOUNDS_MS).alias("bucket")
    counted = (
        bronze.with_columns(bucket)
        .group_by(DEATHS.key_names())
        .agg(
            pl.len().alias("count"),
            pl.col("size").sum().alias("octets"),
            pl.col("acquired").mean().alias("acquired_mean"),
            (pl.col("redriven") > 0).sum(),
            *((pl.col("bucket") == at).sum().alias(f"age_{at}") for at in BUCKETS),
        )
    )
    return counted.with_columns(pl.concat_list([f"age_{at}" for at in BUCKETS]).alias("age"))


def _polars_traffic(bronze: pl.LazyFrame) -> pl.LazyFrame:
    rows = bronze.filter(pl.col("kind") == "queue")
    return rows.group_by(TRAFFIC.key_names()).agg(pl.col(name).sum() for name in SUMS)


QUESTIONS = {
    "deaths": Question(DEATHS, COUNTED, Kind.DEAD, _spark_deaths, DUCKDB_DEATHS, _polars_deaths),
    "traffic, sums": Question(
        TRAFFIC, [*SUMS], Kind.SAMPLES, _spark_traffic, DUCKDB_TRAFFIC, _polars_traffic
    ),
}
