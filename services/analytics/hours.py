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


def hours_below(files: Files, path: str) -> set[str]:
    """Which hours a folder has."""
    return {
        f"{day.name.removeprefix('day=')}T{hour.name.removeprefix('hour=')}"
        for day in files.list(path)
        if day.name.startswith("day=2") or day.name.startswith("day=1")
        for hour in files.list(f"{path}/{day.name}")
    }
