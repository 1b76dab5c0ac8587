"""Rows of bronze, and the rows of a table by their keys."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from services.analytics.tables import COUNTERS, SUMS, Table
from services.redis_stream.schema import Kind, arrow_schema

BEGIN = datetime(2026, 11, 24, 3, tzinfo=UTC)
BEGIN_MS = int(BEGIN.timestamp() * 1000)
HOUR_MS = 3_600_000
MORE = {Kind.DEAD: ("fingerprint", "pattern"), Kind.SAMPLES: ()}  # text columns of bronze
Row = dict[str, Any]
Key = tuple[Any, ...]


def at(ms: int) -> datetime:
    """Return a time; 0 is the beginning of the hour 3."""
    return BEGIN + timedelta(milliseconds=ms)


def ids(ms: int, number: int = 0) -> str:
    return f"{BEGIN_MS + ms}-{number}"


def letter(ms: int, **told: Any) -> Row:
    known = {
        **{"stream": "ps:{main}:4:d", "id": ids(ms), "domain": "main", "queue": "orders", "died": at(ms)},
        **{"enqueued": at(ms - 5000), "reason": "expired", "error": "", "origin": "tmq 10.0.0.1"},
        **{"edge": "tmq", "acquired": 1, "redriven": 0, "size": 7, "fingerprint": "f", "pattern": ""},
    }
    return {**known, **told}


def sample(kind: str, end: int, **told: Any) -> Row:
    number = told.pop("number", 0)
    return {"stream": "s", "id": ids(end, number), "domain": "main", "at": at(end), "kind": kind, **told}


def worked(end: int, queue: str, n: int = 1, **told: Any) -> Row:
    """Return a sample of a queue, in a stream of its own, so that ids are unique."""
    counts = {
        "stream": queue,
        **dict.fromkeys(SUMS, 0),
        **{"process": "p", "ms": 10_000, "refused_puts": 0, "put": [0] * 16, "wait": [0] * 16, "refused": []},
    }
    return sample("queue", end, edge="tmq", queue=queue, n=n, **{**counts, **told})


def looked(ms: int, queue: str = "orders", qid: str = "4", **told: Any) -> Row:
    states = {"len": 1, "leased": 0, "oldest_ms": 0, "dead": 0, **dict.fromkeys(COUNTERS, 0)}
    return sample("depth", ms, queue=queue, qid=qid, **{**states, **told})


def bronze(spark: SparkSession, kind: Kind, rows: Iterable[Row]) -> DataFrame:
    """Return rows with all columns; unknown ones are null."""
    text = pa.string()
    of_day = [("day", text), ("hour", text), ("dataset", text)]
    schema = pa.schema([*of_day, *arrow_schema(kind), *((name, text) for name in MORE[kind])])
    whole = [{**_place(row, kind), **row} for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(whole, schema=schema))


def _place(row: Row, kind: Kind) -> Row:
    time = row["died" if kind is Kind.DEAD else "at"]
    return {"day": f"{time:%Y-%m-%d}", "hour": f"{time:%H}", "dataset": "d1"}


def by_key(rows: DataFrame, table: Table) -> dict[Key, Row]:
    """Return the rows without keys, by their keys without day and hour 3."""
    assert rows.columns == [each.name for each in table.columns]
    found = {}
    for row in rows.toArrow().to_pylist():
        day, hour, *key = (row.pop(name) for name in table.key_names())
        assert day == "2026-11-24"
        if "refused" in row:
            row["refused"] = dict(row["refused"])
        place = (*key,) if hour == "03" else (hour, *key)
        assert place not in found
        found[place] = row
    return found
