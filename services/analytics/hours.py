"""Hours, 'YYYY-MM-DDTHH' in UTC, and the folders of them: day=YYYY-MM-DD/hour=HH."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from services.analytics.files import Files

FORMAT = "%Y-%m-%dT%H"
DAY = re.compile(r"day=[12][0-9]{3}-[0-9]{2}-[0-9]{2}")
HOUR = re.compile(r"hour=([01][0-9]|2[0-3])")


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
    """Which hours a folder has; folders of other names are somebody else's."""
    return {
        f"{day.name.removeprefix('day=')}T{hour.name.removeprefix('hour=')}"
        for day in files.list(path)
        if day.is_folder and _is_day(day.name)
        for hour in files.list(f"{path}/{day.name}")
        if hour.is_folder and HOUR.fullmatch(hour.name)
    }


def _is_day(name: str) -> bool:
    try:
        return bool(DAY.fullmatch(name) and date.fromisoformat(name.removeprefix("day=")))
    except ValueError:
        return False
