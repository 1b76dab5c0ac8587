"""Shorten lists and texts of the report."""

from __future__ import annotations

from collections.abc import Sequence

from services.analytics.report.period import Row, Summary

NAME = 100  # characters
TEXTS = {"pattern": 200, "example": 200}  # characters of an error


def cut(text: str, most: int = NAME) -> str:
    """Return the text with at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


class Shortening:
    """At most `top` rows in each list; rows left out are counted by list."""

    def __init__(self, summary: Summary, top: int) -> None:
        self._summary = summary
        self._top = top
        self.left_out: dict[str, int] = {}

    def listed(self, name: str) -> list[Row]:
        """Return the first rows of a list."""
        return self.first(name, self._summary.lists[name], self._summary.lengths[name])

    def first(self, name: str, rows: Sequence[Row], length: int) -> list[Row]:
        """Return the first of these rows. length: that of the list."""
        if length > self._top:
            self.left_out[name] = length - self._top
        return [_cut(row) for row in rows[: self._top]]


def _cut(row: Row) -> Row:
    return {
        name: cut(value, TEXTS.get(name, NAME)) if isinstance(value, str) else value
        for name, value in row.items()
    }
