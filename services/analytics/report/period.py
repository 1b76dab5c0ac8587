"""Read the gold tables of a report's hours, summed as far as the report needs them.

Of tables with many rows for each queue and hour, only the first rows of the report's lists are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from services.analytics import delta
from services.analytics.hours import Span, between, later, span_of
from services.analytics.tables import COUNTERS, DEATHS, DEPTHS, EDGES, FAILURES, GOLD, SUMS, TRAFFIC
from services.store.model import CLASSES

HOUR = "at"  # column: the row's hour, 'YYYY-MM-DDTHH'
AT = f"concat(day, 'T', hour) AS {HOUR}"
MOST = 20  # rows of a list in the report
OF_QUEUE = ("domain", "queue")
DEATH = (*OF_QUEUE, "reason", "edge")
ALIKE = tuple(each.name for each in FAILURES.keys)  # columns that similar failures share
CHANGE = (HOUR, *OF_QUEUE, "metric")
OLDEST = "0001-01-01T00"
FLOWS = (*SUMS, "refused_all", "refused_puts")
STATES = ("len_max", "oldest_ms_max")
WITH_HOURS = (TRAFFIC, DEPTHS, EDGES, DEATHS)  # every hour of the other tables is one of theirs


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a span by name."""

    span: Span
    # summed over the hours, but edges and changes; `refused` is that of traffic, by reason
    rows: dict[str, pa.Table]
    by_hour: dict[str, pa.Table]  # traffic, depths and deaths summed over the queues, with the column HOUR
    lengths: dict[str, int] = field(default_factory=dict)  # rows of tables of which only the first are here


def read_tables(output: str, now_hour: str, hours: int) -> Tables:
    """Read the tables of the last hours up to the newest one that any table has. Raises TableError.

    Args:
        output: The output, with all gold tables.
        now_hour: The hour of the run; later hours have not begun and are left out.
        hours: Length of the period.
    """
    span = find_span(output, now_hour, hours)
    gold = _Gold(output, span)
    reasons = "unnest(map_keys(refused)) AS reason, unnest(map_values(refused)) AS count"
    rows = {
        "traffic": gold.summed("traffic", OF_QUEUE, FLOWS, histograms=("put", "wait")),
        "refused": gold.read(f"SELECT {reasons} FROM traffic WHERE {gold.inside}"),
        "depths": gold.summed("depths", OF_QUEUE, COUNTERS, STATES),
        "edges": gold.read(f"SELECT * FROM edges WHERE {gold.inside}"),
        "deaths": gold.summed("deaths", DEATH, ("count", "octets", "redriven"), histograms=["age"]),
        "redrives": gold.summed("redrives", OF_QUEUE, ("redriven", "died_again")),
    }
    by_hour = {
        "traffic": gold.summed("traffic", [HOUR], FLOWS),
        "depths": gold.summed("depths", [HOUR], COUNTERS),
        "deaths": gold.summed("deaths", [HOUR], ["count"]),
    }
    first = {
        "origins": gold.first(gold.sums("origins", ["origin"], ["count"]), "count", ["origin"]),
        "failures": gold.first(gold.failures(), "count", ALIKE),
        "changes": gold.first(f"SELECT *, {AT} FROM changes WHERE {gold.inside}", "abs(z)", CHANGE),
    }
    tops = {name: top for name, (top, _) in first.items()}
    return Tables(span, rows | tops, by_hour, {name: length for name, (_, length) in first.items()})


def find_span(output: str, now_hour: str, hours: int) -> Span:
    """Return the last hours up to the newest one that any table has, and that is not after `now_hour`."""
    found: list[str] = []
    for first in (later(now_hour, -2 * hours), OLDEST):  # of an output in use only the last days are read
        found = delta.known_hours(output, WITH_HOURS, first, now_hour)
        if found and later(found[-1], 1 - hours) >= first:
            break
    return span_of(found, hours)


class _Gold:
    """SQL on the gold tables in some hours."""

    def __init__(self, output: str, span: Span) -> None:
        self._output = output
        self.inside = between(span.first, span.last)

    def read(self, text: str) -> pa.Table:
        """Return the rows of a query."""
        return delta.query(self._output, text, *(table for table in GOLD if f"FROM {table.name} " in text))

    def summed(self, *of: Any, **more: Any) -> pa.Table:
        """Return the rows of `sums`."""
        return self.read(self.sums(*of, **more))

    def sums(
        self,
        table: str,
        keys: Sequence[str],
        sums: Iterable[str],
        greatest: Iterable[str] = (),
        histograms: Iterable[str] = (),
    ) -> str:
        """Return a query with a row for each key."""
        selected = [AT if key == HOUR else key for key in keys]
        selected += [f'sum("{name}") AS "{name}"' for name in sums]
        selected += [f'max("{name}") AS "{name}"' for name in greatest]
        for name in histograms:
            counts = ", ".join(f"sum({name}[{number}])" for number in range(1, CLASSES + 1))
            selected.append(f"make_array({counts}) AS {name}")
        grouped = ", ".join(map(str, range(1, len(keys) + 1)))
        return f"SELECT {', '.join(selected)} FROM {table} WHERE {self.inside} GROUP BY {grouped}"

    def failures(self) -> str:
        """Return a query with a row for each group of similar failures; the example is the oldest."""
        oldest = 'ORDER BY "first", example_id'
        return (
            f'SELECT {", ".join(ALIKE)}, sum("count") AS "count", min("first") AS "first", max("last") AS "last", '
            f"first_value(example_id {oldest}) AS example_id, first_value(example {oldest}) AS example "
            f"FROM failures WHERE {self.inside} GROUP BY {', '.join(ALIKE)}"
        )

    def first(self, text: str, size: str, keys: Sequence[str]) -> tuple[pa.Table, int]:
        """Return the greatest rows of a query, ties in order of the keys, and the number of all its rows."""
        order = f"{size} DESC, {', '.join(keys)}"
        found = self.read(f"SELECT *, count(*) OVER () AS length FROM ({text}) ORDER BY {order} LIMIT {MOST}")
        return found.drop_columns("length"), found["length"][0].as_py() if len(found) else 0
