"""Shorten lists and names of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from services.analytics.report.sums import Row
from services.store.report import Count

QUEUE = ("domain", "queue")
NAME = 100  # characters
TEXT = 200  # characters of an error


def cut(text: str | None, most: int = NAME) -> str:
    """Return the text with at most `most` characters."""
    text = text or ""
    return text if len(text) <= most else text[: most - 1] + "…"


class Shortening:
    """At most `top` rows in each list; rows left out are counted by list."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.left_out: dict[str, int] = {}

    def note(self, name: str, rows: int) -> None:
        """Note the length of a list."""
        if rows > self.top:
            self.left_out[name] = rows - self.top

    def first(self, name: str, rows: Sequence[Row], length: int | None = None) -> list[Row]:
        """Return the first rows, with names of queues shortened. length: that of the list, if it has more rows."""
        self.note(name, len(rows) if length is None else length)
        return [{**row, **{key: cut(row[key]) for key in QUEUE if key in row}} for row in rows[: self.top]]

    def most_common(self, name: str, found: Counter[str]) -> tuple[Count, ...]:
        """Return the greatest counts; ties are sorted by name."""
        self.note(name, len(found))
        ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
        return tuple(Count(name=cut(key), count=count) for key, count in ordered[: self.top])
