"""Read and write the files of the tables, one for each hour, whose octets depend only on its rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq

from services.analytics.archive_files import named
from services.analytics.files import Files
from services.analytics.hours import hour_path
from services.analytics.tables import Table
from services.redis_stream.schema import conformed

HOUR = "at"  # column: the row's hour, 'YYYY-MM-DDTHH'
READERS = 8  # files read at a time, as each is small and requests are slow
TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<bigint>": pa.list_(pa.int64()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
}


def table_path(table: Table, hour: str) -> str:
    """Return a file's path below `aggregates`, of the output or of a staging folder."""
    return f"{table.name}/{hour_path(hour)}/{table.name}.parquet"


def schema_of(table: Table) -> pa.Schema:
    """Return the columns of the files; day and hour are folders."""
    return pa.schema([(each.name, TYPES[each.type]) for each in (*table.keys, *table.values)])


def in_order(rows: pa.Table, table: Table) -> pa.Table:
    """Return the columns of the table, with rows sorted by its keys, which are never null."""
    keys = [(each.name, "ascending") for each in table.keys]
    return rows.select(schema_of(table).names).cast(schema_of(table)).sort_by(keys)


def parquet(rows: pa.Table) -> bytes:
    """Return the file as octets, without times or names of programs."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows.combine_chunks().replace_schema_metadata(), sink, compression="zstd")
    return bytes(sink.getvalue())


def parse(octets: bytes, table: Table, hour: str) -> pa.Table:
    """Parse a file and add the column HOUR; missing columns are null."""
    rows = pq.ParquetFile(pa.BufferReader(octets)).read()
    return with_hour(conformed(rows, schema_of(table)), hour)


def with_hour(rows: pa.Table, hour: str) -> pa.Table:
    """Return the rows with the column HOUR."""
    return rows.append_column(HOUR, pa.array([hour] * len(rows), pa.string()))


def empty(table: Table) -> pa.Table:
    """Return the columns without rows."""
    return with_hour(schema_of(table).empty_table(), "")


def read_hours(files: Files, table: Table, places: dict[str, str]) -> pa.Table:
    """Read the rows of hours, with the column HOUR. places: the root folder by hour.

    An hour without a file has no rows: the operator may have moved a damaged file away, as its error advises.
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
