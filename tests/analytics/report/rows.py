"""Generate random tables of some hours as the job writes them; the rows are kept."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from services.analytics.report.period import Tables, span_of
from services.analytics.table_files import schema_of, with_hour
from services.analytics.tables import AGGREGATES

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
    number = lambda: chance.randrange(1000)  # noqa: E731
    moment = LAST - timedelta(hours=back) + timedelta(seconds=chance.randrange(3600))
    traffic = [
        {
            **each,
            **{"edge": edge, "in": number(), "in_octets": number(), "out": number(), "out_octets": number()},
            **{
                "acked": number(),
                "returned": number(),
                "refused_all": 4,
                "refused_puts": chance.choice((None, 1, 4)),
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
            {**each, "len_max": number(), "oldest_ms_max": number(), "added": number(), "dead_all": number()}
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


def tables(rows: Rows, hours: int) -> Tables:
    span = span_of(set(rows), hours)
    found = {}
    for table in AGGREGATES:
        schema = schema_of(table)
        parts = [with_hour(schema.empty_table(), "")]
        for name in span.known:
            made = [_whole(row, schema) for row in rows[name].get(table.name, [])]
            parts.append(with_hour(pa.Table.from_pylist(made, schema), name))
        found[table.name] = pa.concat_tables(parts).combine_chunks()
    return Tables(span, found)


def _whole(row: dict[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """Return the row with maps as pairs, as Arrow needs them."""
    return {name: list(value.items()) if isinstance(value, dict) else value for name, value in row.items()}
