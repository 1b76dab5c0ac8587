"""The hours that a report is about, and their tables: those that are published, and those that the run will publish."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from services.analytics.files import Files
from services.analytics.hours import days_below, hour_path, hours_of_day, later
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


def read_tables(files: Files, staging: str, now_hour: str, hours: int, gone: Gone) -> Tables:
    """staging: of the run; its hours stand in place of published ones. Those behind now_hour have not begun."""
    there = _there(files, staging, now_hour, hours, gone)
    span = span_of({hour for each in there.values() for hour in each}, hours)
    known = {*span.known}
    rows = {}
    for table in AGGREGATES:
        places = {hour: root for hour, root in sorted(there[table.name].items()) if hour in known}
        rows[table.name] = read_hours(files, table, places)
    return Tables(span, rows)


def _there(files: Files, staging: str, now_hour: str, hours: int, gone: Gone) -> dict[str, dict[str, str]]:
    """By table and hour, below which folder it is. From the newest day on as many as the hours reach back."""
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
