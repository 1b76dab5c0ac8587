"""Compute the report's figures by queue."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.report.shortening import QUEUE, Shortening
from services.analytics.report.sums import Row, grouped, merged, most, quantile
from services.store.model import PUT_S, WAIT_S
from services.store.report import Budget, QueueBudget, QueueFigures

COUNTED = {"in": "sum", "out": "sum", "refused_all": "sum"}  # columns of traffic
OF_QUEUES = {**COUNTED, "refused_puts": "sum"}
DIED = {"count": "sum"}  # columns of deaths
STOOD = {"len_max": "max", "oldest_ms_max": "max"}  # columns of depths
NAMES = {"refused_all": "refused", "count": "dead"}  # the report's names of columns


def nothing() -> Row:
    """Return the figures of a queue or hour without rows."""
    return {**dict.fromkeys(("in", "out", "refused", "refused_puts", "dead"), 0), **dict.fromkeys(STOOD)}


def renamed(row: Row) -> Row:
    """Return the row with the report's names of columns."""
    return {NAMES.get(name, name): value for name, value in row.items()}


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

    def __init__(self, traffic: pa.Table, deaths: pa.Table, depths: pa.Table) -> None:
        self._traffic = traffic
        # tables of older versions have no refused_puts
        asked = pc.coalesce(traffic["refused_puts"], traffic["refused_all"])
        of_queues = traffic.drop_columns("refused_puts").append_column("refused_puts", asked)
        found: dict[tuple[str, str], Row] = {}
        for rows, columns in ((of_queues, OF_QUEUES), (deaths, DIED), (depths, STOOD)):
            for row in grouped(rows, QUEUE, **columns):
                found.setdefault((row["domain"], row["queue"]), nothing()).update(renamed(row))
        self.rows = list(found.values())

    def budget(self, objective: float, short: Shortening) -> Budget:
        """Return the error budget of all queues, and of the queues that have used some of it."""
        asked = [{**row, **spent(row["in"], row["refused_puts"], objective)} for row in self.rows]
        worst = most([row for row in asked if row["refused"]], QUEUE, "used", "refused")
        return Budget(
            objective=objective,
            queues=tuple(QueueBudget.model_validate(row) for row in short.first("budget.queues", worst)),
            **spent(self._sum("in"), self._sum("refused_puts"), objective),
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
