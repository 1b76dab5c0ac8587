"""Compute with hours, 'YYYY-MM-DDTHH' in UTC, and select their rows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

FORMAT = "%Y-%m-%dT%H"
HOUR_MS = 3_600_000
HOUR = ("day", "hour")  # the first columns of all tables


def later(hour: str, by: int) -> str:
    """Return the hour `by` hours later."""
    return (datetime.strptime(hour, FORMAT) + timedelta(hours=by)).strftime(FORMAT)


def hour_at(ms: int) -> str:
    """Return the hour of a time in ms since 1970."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime(FORMAT)


def has_ended(hour: str, now_ms: int) -> bool:
    """Return whether the hour is over."""
    return hour < hour_at(now_ms)


def condition(hours: Iterable[str]) -> str:
    """Return the SQL condition for rows of these hours; the days stand alone too, as they prune partitions."""
    days: dict[str, list[str]] = {}
    for hour in sorted(hours):
        days.setdefault(hour[:10], []).append(hour[11:])
    if not days:
        return "false"
    within = " OR ".join(f"(day = '{day}' AND hour IN ({_texts(of)}))" for day, of in days.items())
    return f"day IN ({_texts(days)}) AND ({within})"


def _texts(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)
