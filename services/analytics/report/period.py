"""The hours that a report is about, and their tables: those that are published, and those that the run will publish."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat

import pyarrow as pa
import pyarrow.parquet as pq

from services.analytics.compute import hour_path, hours_below, later
from services.analytics.files import Files
from services.analytics.tables import AGGREGATES, Table

HOUR = "at"  # column: the row's hour, 'YYYY-MM-DDTHH'
READERS = 8  # files at a time: each is small, and takes its time to be asked for, 40 ms also on this machine
TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<bigint>": pa.list_(pa.int64()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
}


@dataclass(frozen=True, slots=True)
class Span:
    """Hours, as 'YYYY-MM-DDTHH'."""

    first: str  # '': there is nothing
    last: str
    hours: int
    known: tuple[str, ...]  # those of which there are tables

    def all(self) -> list[str]:
        """Each of them, whether anything is known of it or not."""
        return [later(self.first, number) for number in range(self.hours)] if self.first else []


@dataclass(frozen=True, slots=True)
class Tables:
    """Of one span, by name; each with the column HOUR."""

    span: Span
    rows: dict[str, pa.Table]


def span_of(known: set[str], hours: int) -> Span:
    """The last hours up to the newest one."""
    if not known:
        return Span("", "", hours, ())
    ending = span_ending(max(known), hours)
    return replace(ending, known=tuple(sorted(hour for hour in known if hour >= ending.first)))


def span_ending(last: str, hours: int) -> Span:
    return Span(later(last, 1 - hours), last, hours, ())


def read_tables(files: Files, staging: str, hours: int, oldest: str) -> Tables:
    """staging: of the run; its hours stand in place of published ones. Before `oldest` there will be none."""
    roots = {
        table.name: (f"{staging}/aggregates/{table.name}", f"aggregates/{table.name}") for table in AGGREGATES
    }
    there = {root: hours_below(files, root) for both in roots.values() for root in both}
    span = span_of({hour for each in there.values() for hour in each if hour >= oldest}, hours)
    known = {*span.known}
    with ThreadPoolExecutor(READERS) as readers:
        rows = {}
        for table in AGGREGATES:
            staged, published = roots[table.name]
            of_hours = {**dict.fromkeys(there[published], published), **dict.fromkeys(there[staged], staged)}
            places = {hour: of_hours[hour] for hour in sorted(of_hours.keys() & known)}
            rows[table.name] = _read(readers, files, table, places)
    return Tables(span, rows)


def _read(readers: ThreadPoolExecutor, files: Files, table: Table, places: dict[str, str]) -> pa.Table:
    """places: below which folder an hour's file lies."""
    paths = [f"{root}/{hour_path(hour)}/{table.name}.parquet" for hour, root in places.items()]
    parts = map(parse, readers.map(files.read_octets, paths), repeat(table), places)
    return pa.concat_tables([empty(table), *parts]).combine_chunks()


def schema_of(table: Table) -> pa.Schema:
    """Of its files: day and hour are folders."""
    return pa.schema([(each.name, TYPES[each.type]) for each in (*table.keys, *table.values)])


def empty(table: Table) -> pa.Table:
    """No rows, but the columns."""
    return with_hour(schema_of(table).empty_table(), "")


def with_hour(rows: pa.Table, hour: str) -> pa.Table:
    return rows.append_column(HOUR, pa.array([hour] * len(rows), pa.string()))


def parse(octets: bytes, table: Table, hour: str) -> pa.Table:
    """One file."""
    rows = pq.ParquetFile(pa.BufferReader(octets)).read()
    return with_hour(rows.cast(schema_of(table)), hour)
