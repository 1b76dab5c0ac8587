"""Compute the report's figures on dead letters."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.report.period import ALIKE, Tables
from services.analytics.report.shortening import QUEUE, TEXT, Shortening, cut
from services.analytics.report.sums import Row, grouped, most, quantiles, total
from services.analytics.tables import AGE_S
from services.store.report import Count, Deaths, Failure, QueueRedrives, Redrives

EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def what_died(tables: Tables, short: Shortening) -> Deaths:
    """Return dead letters by reason, edge and origin, and their age."""
    deaths, origins = tables.rows["deaths"], tables.rows["origins"]
    return Deaths(
        by_reason=_by("reason", deaths, short),
        by_edge=_by("edge", deaths, short),
        by_origin=_by("origin", origins, short, tables.lengths.get("origins")),
        redriven=total(deaths, "redriven"),
        age=quantiles(deaths, "age", AGE_S),
    )


def _by(key: str, rows: pa.Table, short: Shortening, length: int | None = None) -> tuple[Count, ...]:
    ordered = most(grouped(rows, [key], count="sum"), [key], "count")
    found = short.first(f"deaths.by_{key}", ordered, length)
    return tuple(Count(name=cut(row[key]), count=row["count"]) for row in found)


def failures(tables: Tables, short: Shortening) -> tuple[Failure, ...]:
    """Return the most frequent failures of all hours."""
    rows = tables.rows["failures"]
    found = rows.group_by([*ALIKE]).aggregate([("count", "sum"), ("first", "min"), ("last", "max")])
    ordered = found.sort_by([("count_sum", "descending"), *((key, "ascending") for key in ALIKE)])
    short.note("failures", tables.lengths.get("failures", len(ordered)))
    return tuple(_failure(row, rows) for row in ordered.slice(0, short.top).to_pylist())


def _failure(row: Row, rows: pa.Table) -> Failure:
    alike = rows.filter(reduce(pc.and_, [pc.equal(rows[key], row[key]) for key in ALIKE]))
    by_age = alike.sort_by([("first", "ascending"), ("example_id", "ascending")])
    (oldest,) = by_age.slice(0, 1).to_pylist()
    return Failure(
        **{key: cut(row[key]) for key in (*QUEUE, "reason", "fingerprint")},
        pattern=cut(row["pattern"], TEXT),
        count=row["count_sum"],
        first_ms=_ms(row["first_min"]),
        last_ms=_ms(row["last_max"]),
        example_id=cut(oldest["example_id"]),
        example=cut(oldest["example"], TEXT),
    )


def redrives(rows: pa.Table, short: Shortening) -> Redrives:
    """Return redrives and their success, in total and by queue."""
    found = [
        {**row, **_success(row["redriven"], row["died_again"])}
        for row in grouped(rows, QUEUE, redriven="sum", died_again="sum")
    ]
    top = short.first("redrives.queues", most(found, QUEUE, "died_again", "redriven"))
    return Redrives(
        queues=tuple(QueueRedrives.model_validate(row) for row in top),
        **_success(total(rows, "redriven"), total(rows, "died_again")),
    )


def _success(redriven: int, died_again: int) -> Row:
    success = 1 - min(1.0, died_again / redriven) if redriven else None
    return {"redriven": redriven, "died_again": died_again, "success": success}


def _ms(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)
