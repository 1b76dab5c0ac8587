"""Hours, 'YYYY-MM-DDTHH' in UTC, and the folders of them: day=YYYY-MM-DD/hour=HH."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from services.analytics.files import Files

FORMAT = "%Y-%m-%dT%H"


def later(hour: str, by: int) -> str:
    """The hour so many hours later."""
    return (datetime.strptime(hour, FORMAT) + timedelta(hours=by)).strftime(FORMAT)


def hour_at(ms: int) -> str:
    """Of ms since 1970."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime(FORMAT)


def has_ended(hour: str, now_ms: int) -> bool:
    return hour < hour_at(now_ms)


def hour_path(hour: str) -> str:
    day, _, number = hour.partition("T")
    return f"day={day}/hour={number}"


def days_below(files: Files, path: str) -> list[str]:
    """Which days a folder has, in order."""
    names = (each.name for each in files.list(path))
    return [name.removeprefix("day=") for name in names if name.startswith(("day=2", "day=1"))]


def hours_of_day(files: Files, path: str, day: str) -> set[str]:
    return {f"{day}T{hour.name.removeprefix('hour=')}" for hour in files.list(f"{path}/day={day}")}


def hours_below(files: Files, path: str, first: str = "") -> set[str]:
    """Which hours a folder has, from one on: no day before it is asked for."""
    days = (day for day in days_below(files, path) if day >= first[:10])
    return {hour for day in days for hour in hours_of_day(files, path, day) if hour >= first}


class Hours:
    """Which hours a folder has: a day is asked for when one of its hours is, and once."""

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
