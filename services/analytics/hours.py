"""Compute with hours, 'YYYY-MM-DDTHH' in UTC, and their folders day=YYYY-MM-DD/hour=HH."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from services.analytics.files import Files

FORMAT = "%Y-%m-%dT%H"
DAY = re.compile(r"day=[12][0-9]{3}-[0-9]{2}-[0-9]{2}")
HOUR = re.compile(r"hour=([01][0-9]|2[0-3])")


def later(hour: str, by: int) -> str:
    """Return the hour `by` hours later."""
    return (datetime.strptime(hour, FORMAT) + timedelta(hours=by)).strftime(FORMAT)


def hour_at(ms: int) -> str:
    """Return the hour of a time in ms since 1970."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime(FORMAT)


def has_ended(hour: str, now_ms: int) -> bool:
    """Return whether the hour is over."""
    return hour < hour_at(now_ms)


def hour_path(hour: str) -> str:
    """Return the folder of an hour."""
    day, _, number = hour.partition("T")
    return f"day={day}/hour={number}"


def days_below(files: Files, path: str) -> list[str]:
    """Return the days of a folder in order; folders with other names are ignored."""
    return [
        each.name.removeprefix("day=") for each in files.list(path) if each.is_folder and _is_day(each.name)
    ]


def hours_of_day(files: Files, path: str, day: str) -> set[str]:
    """Return the hours of a day in a folder."""
    return {
        f"{day}T{hour.name.removeprefix('hour=')}"
        for hour in files.list(f"{path}/day={day}")
        if hour.is_folder and HOUR.fullmatch(hour.name)
    }


def hours_below(files: Files, path: str, first: str = "") -> set[str]:
    """Return the hours of a folder from `first` on, without listing earlier days."""
    days = (day for day in days_below(files, path) if day >= first[:10])
    return {hour for day in days for hour in hours_of_day(files, path, day) if hour >= first}


class Hours:
    """The hours of a folder; each day is listed once, when one of its hours is asked for."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._days = frozenset(days_below(files, path))
        self._found: dict[str, set[str]] = {}

    def __contains__(self, hour: str) -> bool:
        day = hour[:10]
        if day in self._days and day not in self._found:
            self._found[day] = hours_of_day(self._files, self._path, day)
        return hour in self._found.get(day, ())


def _is_day(name: str) -> bool:
    try:
        return bool(DAY.fullmatch(name) and date.fromisoformat(name.removeprefix("day=")))
    except ValueError:
        return False
