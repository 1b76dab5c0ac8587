"""Compute the report's figures by queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.report.shortening import QUEUE, Shortening
from services.analytics.report.sums import Row, grouped, merged, most, quantile
from services.store.model import PUT_S, WAIT_S
from services.store.report import Budget, QueueBudget, QueueFigures

# what is summed of each table, with the report's names
SUMMED = {
    "depths": {"added": "in", "delivered": "out"},
    "traffic": {"in": "accepted", "refused_all": "refused", "refused_puts": "refused_puts"},
    "deaths": {"count": "dead"},
}
GREATEST = {"depths": ("len_max", "oldest_ms_max")}


def by_key(tables: Mapping[str, pa.Table], keys: Sequence[str]) -> dict[tuple[str, ...], Row]:
    """Return the figures of each queue, or of each hour, that occurs in any of these tables."""
    nothing = {name: 0 for names in SUMMED.values() for name in names.values()}
    found: dict[tuple[str, ...], Row] = {}
    for table, names in SUMMED.items():
        greatest = GREATEST.get(table, ()) if keys == QUEUE else ()
        columns = {**dict.fromkeys(names, "sum"), **dict.fromkeys(greatest, "max")}
        for row in grouped(tables[table], keys, **columns):
            own = found.setdefault(
                tuple(row[key] for key in keys), {**nothing, **dict.fromkeys(GREATEST["depths"])}
            )
            own.update({names.get(name, name): value for name, value in row.items()})
    return found


def spent(accepted: int, refused: int, objective: float) -> Row:
    """Return the figures of an error budget."""
    asked = accepted + refused
    return {
        "asked": asked,
        "refused": refused,
        "availability": accepted / asked if asked else None,
        "used": refused / asked / (1 - objective) if asked else None,
    }


class Queues:
    """All queues that occur in any table."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._traffic = tables["traffic"]
        self.rows = list(by_key(tables, QUEUE).values())

    def budget(self, objective: float, short: Shortening) -> Budget:
        """Return the error budget of all queues, and of the queues that have used some of it, by the edges' samples."""
        asked = [{**row, **spent(row["accepted"], row["refused_puts"], objective)} for row in self.rows]
        worst = most([row for row in asked if row["refused"]], QUEUE, "used", "refused")
        return Budget(
            objective=objective,
            queues=tuple(QueueBudget.model_validate(row) for row in short.first("budget.queues", worst)),
            **spent(self._sum("accepted"), self._sum("refused_puts"), objective),
        )

    def _sum(self, name: str) -> int:
        return sum(row[name] for row in self.rows)

    def top(self, short: Shortening) -> tuple[QueueFigures, ...]:
        """Return the queues with the most dead letters."""
        ordered = most(self.rows, QUEUE, "dead", "refused", "in", "out")
        times = [self._times(row) for row in ordered[: short.top]]
        rows = short.first("queues", ordered)
        return tuple(
            QueueFigures.model_validate({**row, **its}) for row, its in zip(rows, times, strict=True)
        )

    def _times(self, queue: Row) -> Row:
        own = [pc.equal(self._traffic[key], queue[key]) for key in QUEUE]
        rows = self._traffic.filter(pc.and_(*own))
        put, wait = merged(rows, "put"), merged(rows, "wait")
        return {
            **{f"put_p{percent}": quantile(put, PUT_S, percent / 100) for percent in (50, 99)},
            **{f"wait_p{percent}": quantile(wait, WAIT_S, percent / 100) for percent in (50, 99)},
        }
