"""Compute the table `deaths` from the archive's Parquet as the job does, and by Spark SQL, DuckDB and pandas.

An answer is an Arrow table with the columns of COLUMNS and sorted rows: all answers must be equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from services.analytics.aggregates.deaths import Deaths
from services.analytics.aggregates.histograms import matrix
from services.analytics.table_files import in_order, parquet
from services.analytics.tables import AGE_S, DEATHS
from services.analytics.tasks import carried_out

KEYS = ["domain", "queue", "reason", "edge"]
READ = [*KEYS, "died", "enqueued", "size", "acquired", "redriven"]
BOUNDS_MS = [round(bound * 1000) for bound in AGE_S]
AGES = [f"age_{at}" for at in range(len(AGE_S) + 1)]
COUNTED = ["count", "octets", *AGES, "redriven"]
COLUMNS = ["hour", *KEYS, *COUNTED, "acquired_mean"]  # hour: hours since 1970
HOUR_S = 3600
DIGITS = 6  # decimals of a mean
SQL = """
select hour, {keys}, count(*) as count, cast(sum(size) as bigint) as octets, {ages},
  count(*) filter (where redriven > 0) as was_back, avg(acquired) as acquired_mean
from (
  select {keys}, size, acquired, redriven, {hour} as hour, {bucket} as bucket
  from (select *, {age} as age_ms from {rows})
) group by hour, {keys}
"""


def by_job(spark: SparkSession, files: Sequence[Path]) -> pa.Table:
    """Compute with Arrow, in one task for each hour; the files of an hour are in one folder."""
    hours = defaultdict(list)
    for each in files:
        hours[_hour_of(each)].append(str(each))
    told = carried_out(spark, [_Hour(*each) for each in hours.items()], _work, {"rows": pa.binary()})
    parts = [pq.read_table(pa.BufferReader(each["rows"])) for each in told]
    return _answer(pa.concat_tables(parts))


@dataclass(frozen=True, slots=True)
class _Hour:
    number: int
    files: list[str]


def _hour_of(file: Path) -> int:
    """Return the hour since 1970 from the file's folders, `day=YYYY-MM-DD/hour=HH`."""
    day, hour = (folder.name.partition("=")[2] for folder in (file.parents[1], file.parent))
    return int(datetime.fromisoformat(f"{day}T{hour}").replace(tzinfo=UTC).timestamp()) // HOUR_S


def _work(_name: str, hour: _Hour) -> list[dict[str, Any]]:
    """Run one task: read one row group at a time."""
    deaths = Deaths()
    for path in hour.files:
        file = pq.ParquetFile(path, read_dictionary=KEYS)
        for group in range(file.num_row_groups):
            deaths.add(file.read_row_group(group, columns=READ, use_threads=False).combine_chunks())
    rows = pq.read_table(pa.BufferReader(parquet(in_order(deaths.result(), DEATHS))))
    counts = matrix(rows["age"], len(AGES))
    for at, name in enumerate(AGES):
        rows = rows.append_column(name, pa.array(counts[:, at]))
    rows = rows.append_column("hour", pa.array(np.full(len(rows), hour.number)))
    return [{"rows": parquet(rows.select(COLUMNS))}]


def by_sql(spark: SparkSession, files: Sequence[Path]) -> pa.Table:
    spark.read.parquet(*map(str, files)).createOrReplaceTempView("letters")
    micros = "unix_micros({})"
    return _answer(
        spark.sql(_query("letters", "unix_millis({})", f"{micros} div {HOUR_S * 10**6}")).toArrow()
    )


def by_duckdb(files: Sequence[Path], cores: int) -> pa.Table:
    rows = f"read_parquet({[str(each) for each in files]}, hive_partitioning = false)"
    query = _query(rows, "epoch_ms({})", f"epoch_us({{}}) // {HOUR_S * 10**6}")
    with duckdb.connect(config={"threads": cores}) as connection:
        return _answer(connection.sql(query).to_arrow_table())


def _query(rows: str, ms: str, hour: str) -> str:
    """Return the SQL query. rows: a table; ms, hour: expressions for a time."""
    return SQL.format(
        rows=rows,
        keys=", ".join(KEYS),
        age=f"{ms.format('died')} - {ms.format('enqueued')}",
        hour=hour.format("died"),
        bucket=" + ".join(f"cast(age_ms > {bound} as int)" for bound in BOUNDS_MS),
        ages=", ".join(f"count(*) filter (where bucket = {at}) as {name}" for at, name in enumerate(AGES)),
    )


def by_pandas(files: Sequence[Path]) -> pa.Table:
    names = [str(each) for each in files]
    rows = pd.read_parquet(names, columns=READ, partitioning=None, read_dictionary=KEYS)
    died, enqueued = (
        rows[name].astype("datetime64[ms, UTC]").astype("int64") for name in ("died", "enqueued")
    )
    rows["hour"] = died // (HOUR_S * 1000)
    rows["bucket"] = np.searchsorted(BOUNDS_MS, died - enqueued, side="left")
    rows["was_back"] = rows["redriven"] > 0
    of = {"count": ("size", "size"), "octets": ("size", "sum"), "acquired_mean": ("acquired", "mean")}
    groups = rows.groupby(["hour", *KEYS], observed=True).agg(**of, was_back=("was_back", "sum"))
    ages = rows.groupby(["hour", *KEYS, "bucket"], observed=True).size().unstack(fill_value=0)
    ages = ages.reindex(columns=range(len(AGES)), fill_value=0).set_axis(AGES, axis=1)
    return _answer(pa.Table.from_pandas(groups.join(ages).reset_index(), preserve_index=False))


def _answer(rows: pa.Table) -> pa.Table:
    if "was_back" in rows.column_names:
        rows = rows.rename_columns({"was_back": "redriven"})
    types = {**dict.fromkeys(KEYS, pa.string()), "acquired_mean": pa.float64()}
    columns = {name: rows[name].cast(types.get(name, pa.int64())) for name in COLUMNS}
    columns["acquired_mean"] = pc.round(columns["acquired_mean"], DIGITS)
    found = pa.table(columns).sort_by([(name, "ascending") for name in ("hour", *KEYS)])
    return found.combine_chunks()
