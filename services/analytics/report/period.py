"""Find the hours of a report and their tables, published or staged by the run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from services.analytics.files import Files
from services.analytics.hours import days_below, hour_path, hours_of_day, later
from services.analytics.table_files import read_hours
from services.analytics.tables import AGGREGATES


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive hours, 'YYYY-MM-DDTHH'."""

    first: str  # '': no hour is known
    last: str
    hours: int
    known: tuple[str, ...]  # hours with tables

    def all(self) -> list[str]:
        """Return every hour, with or without tables."""
        return [later(self.first, number) for number in range(self.hours)] if self.first else []


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a span by name, each with the column HOUR."""

    span: Span
    rows: dict[str, pa.Table]


def span_of(known: set[str], hours: int) -> Span:
    """Return the last hours up to the newest known one."""
    if not known:
        return Span("", "", hours, ())
    ending = span_ending(max(known), hours)
    return replace(ending, known=tuple(sorted(hour for hour in known if hour >= ending.first)))


def span_ending(last: str, hours: int) -> Span:
    """Return the span of hours that ends with `last`."""
    return Span(later(last, 1 - hours), last, hours, ())


@dataclass(frozen=True, slots=True)
class Gone:
    """Hours and folders that the run removes before the report is published."""

    oldest: str  # hours before it are removed
    folders: frozenset[str]  # folders that are removed


def read_tables(files: Files, staging: str, now_hour: str, hours: int, gone: Gone) -> Tables:
    """Read the tables of the last hours; hours staged by the run replace published ones.

    Hours after now_hour have not begun and are left out.
    """
    there = _there(files, staging, now_hour, hours, gone)
    span = span_of({hour for each in there.values() for hour in each}, hours)
    known = {*span.known}
    rows = {}
    for table in AGGREGATES:
        places = {hour: root for hour, root in sorted(there[table.name].items()) if hour in known}
        rows[table.name] = read_hours(files, table, places)
    return Tables(span, rows)


def _there(files: Files, staging: str, now_hour: str, hours: int, gone: Gone) -> dict[str, dict[str, str]]:
    """Return the root folder by table and hour. Days are listed from the newest one back as far as the hours reach."""
    roots = ("aggregates", f"{staging}/aggregates")
    days = {(root, t.name): days_below(files, f"{root}/{t.name}") for root in roots for t in AGGREGATES}
    found: dict[str, dict[str, str]] = {table.name: {} for table in AGGREGATES}
    wanted = {day for each in days.values() for day in each if gone.oldest[:10] <= day <= now_hour[:10]}
    for day in sorted(wanted, reverse=True):
        newest = max((hour for each in found.values() for hour in each), default="")
        if newest and day < later(newest, 1 - hours)[:10]:
            break
        for (root, name), own in days.items():
            if day in own:
                there = hours_of_day(files, f"{root}/{name}", day)
                found[name] |= {
                    hour: root
                    for hour in there
                    if gone.oldest <= hour <= now_hour
                    and f"{root}/{name}/{hour_path(hour)}" not in gone.folders
                }
    return found
