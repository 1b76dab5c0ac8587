"""Lists and names as long as the report has room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from services.analytics.report.sums import Row
from services.store.report import Count

QUEUE = ("domain", "queue")
NAME = 100  # characters
TEXT = 200  # characters of an error


def cut(text: str | None, most: int = NAME) -> str:
    text = text or ""
    return text if len(text) <= most else text[: most - 1] + "…"


class Shortening:
    """At most `top` rows a list; it counts those that are left out, by the list."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.left_out: dict[str, int] = {}

    def note(self, name: str, rows: int) -> None:
        """A list has so many."""
        if rows > self.top:
            self.left_out[name] = rows - self.top

    def first(self, name: str, rows: Sequence[Row]) -> list[Row]:
        """Of rows that are in order; their queues' names are cut."""
        self.note(name, len(rows))
        return [{**row, **{key: cut(row[key]) for key in QUEUE if key in row}} for row in rows[: self.top]]

    def most_common(self, name: str, found: Counter[str]) -> tuple[Count, ...]:
        """The same by their names."""
        self.note(name, len(found))
        ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
        return tuple(Count(name=cut(key), count=count) for key, count in ordered[: self.top])
