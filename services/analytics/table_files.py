"""The files of the tables: of each hour one, whose octets depend on nothing but its rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq

from services.analytics.archive_files import named
from services.analytics.files import Files
from services.analytics.hours import hour_path
from services.analytics.schema import conformed
from services.analytics.tables import Table

HOUR = "at"  # column: the row's hour, 'YYYY-MM-DDTHH'
READERS = 8  # files at a time: each is small, and takes its time to be asked for
TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<bigint>": pa.list_(pa.int64()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
}


def table_path(table: Table, hour: str) -> str:
    """Below `aggregates`, of the output or of a run's staging."""
    return f"{table.name}/{hour_path(hour)}/{table.name}.parquet"


def schema_of(table: Table) -> pa.Schema:
    """Of its files: day and hour are folders."""
    return pa.schema([(each.name, TYPES[each.type]) for each in (*table.keys, *table.values)])


def in_order(rows: pa.Table, table: Table) -> pa.Table:
    """Its columns, the rows sorted by its keys. Keys are never null."""
    keys = [(each.name, "ascending") for each in table.keys]
    return rows.select(schema_of(table).names).cast(schema_of(table)).sort_by(keys)


def parquet(rows: pa.Table) -> bytes:
    """The file as octets. Nothing in it tells of a time or a process."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows.combine_chunks().replace_schema_metadata(), sink, compression="zstd")
    return bytes(sink.getvalue())


def parse(octets: bytes, table: Table, hour: str) -> pa.Table:
    """One file, with the column HOUR; columns that it does not have are null."""
    rows = pq.ParquetFile(pa.BufferReader(octets)).read()
    return with_hour(conformed(rows, schema_of(table)), hour)


def with_hour(rows: pa.Table, hour: str) -> pa.Table:
    return rows.append_column(HOUR, pa.array([hour] * len(rows), pa.string()))


def empty(table: Table) -> pa.Table:
    """No rows, but the columns."""
    return with_hour(schema_of(table).empty_table(), "")


def read_hours(files: Files, table: Table, places: dict[str, str]) -> pa.Table:
    """The hours' rows with the column HOUR; places: below which folder each hour's file lies.

    An hour whose file is not there has no rows: somebody moved it out, as whoever finds it damaged is told to.
    """
    paths = [f"{root}/{table_path(table, hour)}" for hour, root in places.items()]
    with ThreadPoolExecutor(READERS) as readers:
        parts = [
            _named(path, octets, table, hour)
            for path, octets, hour in zip(
                paths, readers.map(files.octets_if_there, paths), places, strict=True
            )
            if octets is not None
        ]
        return pa.concat_tables([empty(table), *parts]).combine_chunks()


def _named(path: str, octets: bytes, table: Table, hour: str) -> pa.Table:
    with named(path):
        return parse(octets, table, hour)
