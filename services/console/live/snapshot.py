"""A snapshot of all queues, with rates since the previous one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.console.live.rows import (
    OCTET_RATES,
    RATES,
    Figures,
    Rates,
    Row,
    has_changed,
    last_delivery,
    rates_of,
    summary_of,
    unread_row,
)
from services.store import Queue
from services.store.catalogue import BulkStatsResult

MAX_INTERVAL_S = 60.0  # rates over longer intervals are not current
BATCH = 100  # rows, before yielding to other tasks
TOTALS = {"ready": "ready", "inFlight": "in_flight", "dead": "dead_letters", "bytes": "bytes"}
ALL_RATES = {**RATES, **OCTET_RATES}


@dataclass(slots=True)
class Snapshot:
    """The result of a poll. `rows` are sorted by name."""

    version: int = 0
    taken: float = 0.0  # monotonic
    rows: dict[str, Row] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    rates: Rates = field(default_factory=lambda: dict.fromkeys(ALL_RATES))
    at_ms: int = 0  # by the store's clock

    def is_within(self, seconds: float) -> bool:
        """Return whether it is a poll's result no older than so many seconds."""
        return bool(self.version) and time.monotonic() - self.taken <= seconds

    async def fill(
        self,
        before: Snapshot,
        queues: Sequence[Queue],
        stats: BulkStatsResult,
        unreadable: Mapping[str, str],
    ) -> None:
        """Fill in the rows, totals and rates; rows that changed since the previous snapshot get its version."""
        seconds = self.taken - before.taken
        if seconds > MAX_INTERVAL_S:
            seconds = 0.0
        self.totals = dict.fromkeys(TOTALS, 0)
        for number, queue in enumerate(queues):
            old = before.rows.get(queue.name)
            if (figures := stats.stats.get(queue.name)) is not None:
                row = self._row(queue, figures, old, seconds, unreadable.get(queue.name, ""))
            elif (error := stats.errors.get(queue.name)) is not None:
                row = unread_row(queue, old, error, self.version, unreadable.get(queue.name, ""))
            else:
                continue  # deleted meanwhile
            self.rows[queue.name] = row
            for name, of in TOTALS.items():
                self.totals[name] += row.base[of]
            if number % BATCH == BATCH - 1:
                await asyncio.sleep(0)
        self._sum(before, seconds)

    def put(self, row: Row) -> None:
        """Replace or add a row."""
        name = row.queue.name
        old = self.rows.get(name)
        if old is not None:
            self._count(old, -1)
        self._count(row, 1)
        self.rows[name] = row
        if old is None:
            self.rows = dict(sorted(self.rows.items()))

    def drop(self, name: str) -> None:
        """Remove a row."""
        self._count(self.rows.pop(name), -1)

    def _count(self, row: Row, sign: int) -> None:
        for name in TOTALS:
            self.totals[name] += sign * row.summary[name]

    def _row(self, queue: Queue, figures: Figures, old: Row | None, seconds: float, unreadable: str) -> Row:
        if old is not None and old.queue.qid != queue.qid:
            old = None
        delivered_at = last_delivery(figures, old, self.taken)
        if old is not None and not old.is_read:
            old = None
        rates = rates_of(RATES, figures, old.base if old is not None else None, seconds)
        summary = summary_of(queue, figures, rates, unreadable, idle_s=self.taken - delivered_at)
        version, age_ms = self.version, summary["oldestAgeMs"]
        if old is not None and not has_changed(summary, old):
            version, age_ms = old.version, old.sent_age_ms
        return Row(queue, figures, rates, summary, version, age_ms, delivered_at)

    def _sum(self, before: Snapshot, seconds: float) -> None:
        """Compute the rates of all queues together; a new queue counts from the next poll on."""
        if not before.version or not seconds:
            return
        sums = dict.fromkeys(ALL_RATES, 0.0)
        for name, row in self.rows.items():
            old = before.rows.get(name)
            if old is not None and old.is_read and old.queue.qid == row.queue.qid:
                for rate, of in ALL_RATES.items():
                    sums[rate] += row.base[of] - old.base[of]
        self.rates = {rate: round(max(total, 0.0) / seconds, 2) for rate, total in sums.items()}
