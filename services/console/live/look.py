"""All queues in one look, and what came of them since the one before."""

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
    rates_of,
    summary_of,
    taken_at,
    unread_row,
)
from services.store import Queue
from services.store.catalogue import BulkStatsResult

OLDEST_BASE_S = 60.0  # rates over longer than this would tell nothing of now
STRETCH = 100  # rows in a row, before others get a turn
TOTALS = {"ready": "ready", "inFlight": "in_flight", "dead": "dead_letters", "bytes": "bytes"}
ALL_RATES = {**RATES, **OCTET_RATES}


@dataclass(slots=True)
class Look:
    """What was seen. `rows` by name, in the order of names."""

    version: int = 0
    taken: float = 0.0  # monotonic
    rows: dict[str, Row] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    rates: Rates = field(default_factory=lambda: dict.fromkeys(ALL_RATES))
    at_ms: int = 0  # by the store's clock

    def is_within(self, seconds: float) -> bool:
        """Whether anything was seen, and since then."""
        return bool(self.version) and time.monotonic() - self.taken <= seconds

    async def compared(
        self,
        before: Look,
        queues: Sequence[Queue],
        looked: BulkStatsResult,
        unreadable: Mapping[str, str],
    ) -> Look:
        """Itself, with what was found; rows that changed since the look before have its version."""
        seconds = self.taken - before.taken
        if seconds > OLDEST_BASE_S:
            seconds = 0.0
        self.totals = dict.fromkeys(TOTALS, 0)
        for number, queue in enumerate(queues):
            old = before.rows.get(queue.name)
            if (figures := looked.stats.get(queue.name)) is not None:
                row = self._row(queue, figures, old, seconds, unreadable.get(queue.name, ""))
            elif (error := looked.errors.get(queue.name)) is not None:
                row = unread_row(queue, old, error, self.version, unreadable.get(queue.name, ""))
            else:
                continue  # deleted meanwhile
            self.rows[queue.name] = row
            for name, of in TOTALS.items():
                self.totals[name] += row.base[of]
            if number % STRETCH == STRETCH - 1:
                await asyncio.sleep(0)
        self._sum(before, seconds)
        return self

    def put(self, row: Row) -> None:
        """One that was looked at again, or is new."""
        name = row.queue.name
        old = self.rows.get(name)
        if old is not None:
            self._count(old, -1)
        self._count(row, 1)
        self.rows[name] = row
        if old is None:
            self.rows = dict(sorted(self.rows.items()))

    def drop(self, name: str) -> None:
        """One that is gone."""
        self._count(self.rows.pop(name), -1)

    def _count(self, row: Row, sign: int) -> None:
        for name in TOTALS:
            self.totals[name] += sign * row.summary[name]

    def _row(self, queue: Queue, figures: Figures, old: Row | None, seconds: float, unreadable: str) -> Row:
        if old is not None and old.queue.qid != queue.qid:
            old = None
        taken = taken_at(figures, old, self.taken)
        if old is not None and not old.is_read:
            old = None
        rates = rates_of(RATES, figures, old.base if old is not None else None, seconds)
        summary = summary_of(queue, figures, rates, unreadable, untaken_s=self.taken - taken)
        version, age_ms = self.version, summary["oldestAgeMs"]
        if old is not None and not has_changed(summary, old):
            version, age_ms = old.version, old.told_age_ms
        return Row(queue, figures, rates, summary, version, age_ms, taken)

    def _sum(self, before: Look, seconds: float) -> None:
        """Rates of all together; a queue that is new counts from the next look on."""
        if not before.version or not seconds:
            return
        sums = dict.fromkeys(ALL_RATES, 0.0)
        for name, row in self.rows.items():
            old = before.rows.get(name)
            if old is not None and old.is_read and old.queue.qid == row.queue.qid:
                for rate, of in ALL_RATES.items():
                    sums[rate] += row.base[of] - old.base[of]
        self.rates = {rate: round(max(total, 0.0) / seconds, 2) for rate, total in sums.items()}
