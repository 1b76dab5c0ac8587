"""Generate random tables of some hours as the job writes them, and read them for the report."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql.pandas.types import to_arrow_schema

from services.analytics import delta
from services.analytics.report.period import Summary, read_tables
from services.analytics.tables import COUNTERS, GOLD, Table

LAST = datetime(2025, 11, 24, 16, tzinfo=UTC)
Rows = dict[str, dict[str, list[dict[str, Any]]]]  # by hour and table
HOSTILE = (
    "<script>hit()</script>",
    '"><img src=x onerror=hit()>',
    "</style><script>hit()</script>",
    "{{ 7 * 7 }}",
    "$x^2$",
    "\u202egnp.exe \u05e9\u05dc\u05d5\u05dd",
    "\x00\x07\x1b[31m",
    "javascript:hit()",
    "w" * 900,
    "\U0001f480" * 300,
)


def hour(back: int) -> str:
    return (LAST - timedelta(hours=back)).strftime("%Y-%m-%dT%H")


def counts(chance: random.Random) -> list[int]:
    return [chance.choice((0, 0, 3, 50)) for _ in range(16)]


def some(chance: random.Random, hours: int, names: tuple[str, ...]) -> Rows:
    """Return rows for each of the last hours; each has every name as queue, reason, origin and error."""
    return {hour(back): _of_hour(chance, back, names) for back in range(hours)}


def _of_hour(chance: random.Random, back: int, names: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    queue = [{"domain": chance.choice(("main", "other")), "queue": name} for name in names]
    number: Callable[[], int] = lambda: chance.randrange(1000)  # noqa: E731
    moment = LAST - timedelta(hours=back) + timedelta(seconds=chance.randrange(3600))
    traffic = [
        {
            **each,
            **{"edge": edge, "in": number(), "in_octets": number(), "out": number(), "out_octets": number()},
            **{
                "acked": number(),
                "returned": number(),
                "refused_all": 4,
                "refused_puts": chance.choice((0, 1, 4)),
                "refused": {"full": 1, names[0]: 3},
            },
            **{"put": counts(chance), "wait": counts(chance)},
        }
        for each in queue
        for edge in ("tmq", "ring")
    ]
    deaths = [
        {**each, "reason": reason, "edge": "tmq", "count": number(), "octets": number(), "redriven": 2}
        | {"age": counts(chance)}
        for each in queue
        for reason in names[:2]
    ]
    failures = [
        {**each, "reason": names[0], "pattern": name, "fingerprint": f"{place:016x}", "count": number()}
        | {"first": moment, "last": moment + timedelta(seconds=5), "example_id": f"{back}-{place}"}
        | {"example": f"{name} {back}"}
        for each in queue
        for place, name in enumerate(names)
    ]
    return {
        "traffic": traffic,
        "depths": [
            {**each, "len_max": number(), "oldest_ms_max": number(), **{name: number() for name in COUNTERS}}
            for each in queue
        ],
        "edges": [
            {"edge": edge, "processes": number(), "connections_max": number(), "opened": number()}
            | {"received_octets": number(), "sent_octets": number(), "refused": {"busy": number()}}
            for edge in ("tmq", names[-1])
        ],
        "deaths": deaths,
        "origins": [{**each, "origin": name, "count": number()} for each in queue for name in names],
        "failures": failures,
        "redrives": [{**each, "redriven": number(), "died_again": number()} for each in queue],
        "changes": [
            {**each, "metric": "in", "value": 1.5, "week_median": 1.0, "z": chance.uniform(-9, 9)}
            | {"verdict": "up"}
            for each in queue
        ],
    }


def tables(rows: Rows, hours: int) -> Summary:
    """Return what the gold tables with these rows tell of the last hours."""
    with TemporaryDirectory() as output:
        write(rows, Path(output))
        return read_tables(output, hour(0), hours)


def write(rows: Rows, output: Path) -> None:
    """Append the rows to the gold tables of an output."""
    delta.create(str(output), GOLD)
    for table in GOLD:
        found = [row for hour in rows for row in _of_table(rows, hour, table)]
        schema = to_arrow_schema(table.schema(), timezone="UTC")
        write_deltalake(output / "gold" / table.name, pa.Table.from_pylist(found, schema), mode="append")


def _of_table(rows: Rows, hour: str, table: Table) -> list[dict[str, Any]]:
    day, _, number = hour.partition("T")
    pairs: Callable[[Any], Any] = lambda value: [*value.items()] if isinstance(value, dict) else value  # noqa: E731
    return [
        {"day": day, "hour": number, **{name: pairs(value) for name, value in row.items()}}
        for row in rows[hour].get(table.name, ())
    ]
