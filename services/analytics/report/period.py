"""Read from the gold tables what the report tells of some hours: sums, and the first rows of its lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from services.analytics import delta
from services.analytics.hours import Span, between, later, span_of
from services.analytics.report.queries import HOURS, LISTS, SUMS
from services.analytics.tables import DEATHS, DEPTHS, EDGES, GOLD, TRAFFIC

MOST = 20  # rows of a list in the report
OLDEST = "0001-01-01T00"
WITH_HOURS = (TRAFFIC, DEPTHS, EDGES, DEATHS)  # every hour of the other tables is one of theirs
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """What the tables tell of a span, with the names of the report's fields."""

    span: Span
    sums: dict[str, Row]  # by table
    hours: dict[str, Row]  # known ones; those with rows of edges only are absent
    lists: dict[str, list[Row]]  # the first rows of each list of the report
    lengths: dict[str, int]  # number of all rows of each list


def read_tables(output: str, now_hour: str, hours: int) -> Summary:
    """Read the tables of the last hours up to the newest one that any table has. Raises TableError.

    Args:
        output: The output, with all gold tables.
        now_hour: The hour of the run; later hours have not begun and are left out.
        hours: Length of the period.
    """
    span = find_span(output, now_hour, hours)
    sums = {table: _query(output, span, text)[0] for table, text in SUMS.items()}
    by_hour = {row["at"]: row for row in _query(output, span, HOURS)}
    lists = {name: _query(output, span, _first(*of)) for name, of in LISTS.items()}
    lengths = {name: rows[0]["length"] if rows else 0 for name, rows in lists.items()}
    return Summary(span, sums, by_hour, lists, lengths)


def find_span(output: str, now_hour: str, hours: int) -> Span:
    """Return the last hours up to the newest one that any table has, and that is not after `now_hour`."""
    found: list[str] = []
    for first in (later(now_hour, -2 * hours), OLDEST):  # of an output in use only the last days are read
        found = delta.known_hours(output, WITH_HOURS, first, now_hour)
        if found and later(found[-1], 1 - hours) >= first:
            break
    return span_of(found, hours)


def _first(text: str, order: str) -> str:
    """Return a query for the first rows of another one, with the number of all its rows as `length`."""
    return f"SELECT *, count(*) OVER () AS length FROM ({text}) ORDER BY {order} LIMIT {MOST}"


def _query(output: str, span: Span, text: str) -> list[Row]:
    """Return the rows of a query on tables of which only the hours of the span are visible; no text is null."""
    tables = [table for table in GOLD if re.search(rf"FROM {table.name}\b", text)]
    inside = between(span.first, span.last)
    views = (
        f"{table.name} AS (SELECT *, concat(day, 'T', hour) AS at FROM {table.name} WHERE {inside})"
        for table in tables
    )
    found = delta.query(output, f"WITH {', '.join(views)} {text}", *tables)
    for number, column in enumerate(found.columns):
        if column.type == pa.string():
            found = found.set_column(number, found.field(number), pc.fill_null(column, ""))
    return list(found.to_pylist())
