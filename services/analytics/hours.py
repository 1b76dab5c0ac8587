"""Compute with hours, 'YYYY-MM-DDTHH' in UTC, and select their rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

FORMAT = "%Y-%m-%dT%H"
HOUR_MS = 3_600_000
HOUR = ("day", "hour")  # the first columns of all tables but `runs`


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive hours."""

    first: str  # '': no hour is known
    last: str
    hours: int
    known: tuple[str, ...] = ()  # hours with rows in a table

    def all(self) -> list[str]:
        """Return every hour, with or without rows."""
        return [later(self.first, number) for number in range(self.hours)] if self.first else []


def later(hour: str, by: int) -> str:
    """Return the hour `by` hours later."""
    return (datetime.strptime(hour, FORMAT) + timedelta(hours=by)).strftime(FORMAT)


def hour_at(ms: int) -> str:
    """Return the hour of a time in ms since 1970."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime(FORMAT)


def has_ended(hour: str, now_ms: int) -> bool:
    """Return whether the hour is over."""
    return hour < hour_at(now_ms)


def span_ending(last: str, hours: int) -> Span:
    """Return the span of hours that ends with `last`."""
    return Span(later(last, 1 - hours), last, hours)


def span_of(known: Iterable[str], hours: int) -> Span:
    """Return the last hours up to the newest known one."""
    ordered = sorted(known)
    if not ordered:
        return Span("", "", hours)
    ending = span_ending(ordered[-1], hours)
    return replace(ending, known=tuple(hour for hour in ordered if hour >= ending.first))


def condition(hours: Iterable[str]) -> str:
    """Return the SQL condition for rows of these hours; the days stand alone too, as they prune partitions."""
    days: dict[str, list[str]] = {}
    for hour in sorted(hours):
        days.setdefault(hour[:10], []).append(hour[11:])
    if not days:
        return "false"
    within = " OR ".join(f"(day = '{day}' AND hour IN ({_texts(of)}))" for day, of in days.items())
    return f"day IN ({_texts(days)}) AND ({within})"


def between(first: str, last: str) -> str:
    """Return the SQL condition for rows of the hours from `first` to `last`; it prunes partitions, too."""
    return f"day BETWEEN '{first[:10]}' AND '{last[:10]}' AND concat(day, 'T', hour) BETWEEN '{first}' AND '{last}'"


def _texts(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)
