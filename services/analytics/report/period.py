"""The hours that a report is about, and their tables: those that are published, and those that the run will publish."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from services.analytics.files import Files
from services.analytics.hours import hour_path, hours_below, later
from services.analytics.table_files import read_hours
from services.analytics.tables import AGGREGATES


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


@dataclass(frozen=True, slots=True)
class Gone:
    """What will not be there any more when the report is."""

    oldest: str  # of hours before this one nothing
    folders: frozenset[str]  # nothing in these


def read_tables(files: Files, staging: str, hours: int, gone: Gone) -> Tables:
    """staging: of the run; its hours stand in place of published ones."""
    roots = ("aggregates", f"{staging}/aggregates")
    there = {
        table.name: {
            hour: root
            for root in roots
            for hour in hours_below(files, f"{root}/{table.name}")
            if f"{root}/{table.name}/{hour_path(hour)}" not in gone.folders
        }
        for table in AGGREGATES
    }
    span = span_of({hour for each in there.values() for hour in each if hour >= gone.oldest}, hours)
    known = {*span.known}
    rows = {}
    for table in AGGREGATES:
        places = {hour: root for hour, root in sorted(there[table.name].items()) if hour in known}
        rows[table.name] = read_hours(files, table, places)
    return Tables(span, rows)
