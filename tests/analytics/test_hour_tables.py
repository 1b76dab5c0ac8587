"""Test that an hour's tables depend neither on the files of its rows nor on the number of tasks."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

from services.analytics.aggregates.hour import Share, tables
from services.analytics.aggregates.repeats import NAMED_BY
from services.analytics.compute import BY_NAME
from services.analytics.cleaning.cleaning import archive_schema
from services.analytics.settings import Shape
from services.analytics.table_files import in_order, parquet
from services.analytics.tables import COUNTERS, SUMS
from services.redis_stream.schema import Kind

HOUR = "2026-11-24T03"
BEGIN = datetime(2026, 11, 24, 3, tzinfo=UTC)
BEGIN_MS = int(BEGIN.timestamp() * 1000)
SHAPE = Shape(top=3)
Row = dict[str, Any]


def ids(ms: int, number: int = 0) -> str:
    return f"{BEGIN_MS + ms}-{number}"


def at(ms: int) -> datetime:
    return BEGIN + timedelta(milliseconds=ms)


def letter(ms: int, **told: Any) -> Row:
    known = {
        **{"stream": "ps:{main}:4:d", "id": ids(ms), "domain": "main", "queue": "orders", "died": at(ms)},
        **{"enqueued": at(ms - 5000), "reason": "expired", "error": "", "origin": "tmq 10.0.0.1"},
        **{"edge": "tmq", "acquired": 1, "redriven": 0, "size": 7, "fingerprint": "f", "pattern": ""},
    }
    return {**known, **told}


def sample(kind: str, end_ms: int, **told: Any) -> Row:
    return {"stream": "s", "id": ids(end_ms), "domain": "main", "at": at(end_ms), "kind": kind, **told}


def worked(end_ms: int, queue: str, n: int, process: str = "p", **told: Any) -> Row:
    counts = {
        **dict.fromkeys(SUMS, 0),
        "ms": 10_000,
        "refused_puts": 0,
        "put": [0] * 16,
        "wait": [0] * 16,
        "refused": [],
    }
    return sample("queue", end_ms, edge="tmq", queue=queue, process=process, n=n, **{**counts, **told})


def looked(ms: int, queue: str = "orders", qid: str = "4", **told: Any) -> Row:
    states = {"len": 1, "leased": 0, "oldest_ms": 0, "dead": 0, **dict.fromkeys(COUNTERS, 0)}
    return sample("depth", ms, queue=queue, qid=qid, **{**states, **told})


class Hour:
    """Rows of an hour in files, and the tables computed from them."""

    def __init__(self, folder: Path, kind: Kind) -> None:
        self._folder = folder
        self._kind = kind
        self._number = 0

    def file(self, rows: list[Row], group: int = 1000) -> str:
        self._number += 1
        name = f"{self._number}.parquet"
        schema = archive_schema(self._kind)
        whole = [{column: row.get(column) for column in schema.names} for row in rows]
        table = pa.Table.from_pylist(whole, schema=schema)
        pq.write_table(table, self._folder / name, row_group_size=max(1, group))
        return name

    def octets(self, files: list[str], before: list[str] | None = None, shares: int = 1) -> dict[str, bytes]:
        """Return the tables as published."""
        parts: dict[str, list[pa.Table]] = {}
        for number in range(shares):
            share = Share(self._kind, HOUR, tuple(files), tuple(before or ()), number, shares)
            for name, rows in tables(LocalFileSystem(), str(self._folder), share, SHAPE).items():
                parts.setdefault(name, []).append(in_order(rows, BY_NAME[name]))
        return {
            name: parquet(in_order(pa.concat_tables(rows), BY_NAME[name])) for name, rows in parts.items()
        }

    def rows(self, table: str, *rows: Row, before: tuple[Row, ...] = ()) -> list[Row]:
        octets = self.octets([self.file([*rows])], [self.file([*before])] if before else [])
        found: list[Row] = pq.read_table(pa.BufferReader(octets[table])).to_pylist()
        return found


def scattered(chance: random.Random, hour: Hour, rows: list[Row]) -> list[str]:
    """Write the rows to random files in random order."""
    rows = chance.sample(rows, len(rows))
    cuts = sorted(chance.randrange(len(rows) + 1) for _ in range(chance.randrange(4)))
    parts = [rows[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    return [hour.file(part, chance.randrange(1, 200)) for part in chance.sample(parts, len(parts))]


@pytest.mark.parametrize("_", range(2))
def test_letters_in_any_files_and_shares_make_the_same_octets(
    tmp_path: Path, chance: random.Random, _: int
) -> None:
    numbers, streams = (0, 1, 1 << 20, (1 << 64) - 1), ("ps:{main}:4:d", "ps:{main}:9:d")
    names = [(ids(ms, number), stream) for ms in range(60) for number in numbers for stream in streams]
    rows = [
        letter(
            chance.randrange(3_600_000),
            id=identifier,
            stream=stream,
            queue=chance.choice(("a", "b", "c d", "é")),
            reason=chance.choice(("expired", "attempts")),
            error=f"error {number}",
            pattern=chance.choice(("error 0", "other")),
            origin=f"tmq 10.0.0.{chance.randrange(6)}",
            edge=chance.choice(("tmq", "ring")),
            enqueued=at(chance.choice((-5000, 0, -86_400_000))),
            redriven=chance.choice((0, 0, 2)),
        )
        for number, (identifier, stream) in enumerate(chance.sample(names, 400))
    ]
    hour = Hour(tmp_path, Kind.DEAD)
    first = hour.octets([hour.file(rows)])
    assert {*first} == {"deaths", "origins", "failures"}
    for shares in (1, 3):
        assert hour.octets(scattered(chance, hour, rows), shares=shares) == first


@pytest.mark.parametrize("_", range(2))
def test_samples_in_any_files_and_shares_make_the_same_octets(
    tmp_path: Path, chance: random.Random, _: int
) -> None:
    begun = [looked(ms - 3_600_000, q, added=9) for ms in range(0, 3_600_000, 600_000) for q in ("a", "b")]
    rows = []
    for n in range(120):
        ms = n * 30_000
        for number, queue in enumerate(("a", "b", "c d")):
            told = {"in": chance.randrange(9), "put": [chance.randrange(3) for _ in range(16)]}
            row = worked(ms, queue, n, refused=[("full", 2)] if chance.random() < 0.2 else [], **told)
            row["id"] = ids(ms, number)
            rows.append(row)
            if chance.random() < 0.05:
                rows.append({**row, "id": ids(ms, number + 10)})
            counters = {name: n * 7 if chance.random() < 0.95 else 0 for name in COUNTERS}
            rows.append(
                {**looked(ms, queue, len=chance.randrange(9), **counters), "id": ids(ms, number + 20)}
            )
        flow = {"connections": chance.randrange(9), "opened": 1, "received_octets": 2, "sent_octets": 3}
        rows.append(sample("edge", ms, edge="tmq", process="p", n=n, refused=[("busy", 1)], **flow))
    hour = Hour(tmp_path, Kind.SAMPLES)
    first = hour.octets([hour.file(rows)], [hour.file(begun)])
    assert {*first} == {"traffic", "depths", "edges"}
    for shares in (1, 3):
        files, before = scattered(chance, hour, rows), scattered(chance, hour, begun)
        assert hour.octets(files, before, shares) == first


def test_an_hour_without_rows_has_no_tables(tmp_path: Path) -> None:
    for kind in (Kind.DEAD, Kind.SAMPLES):
        hour = Hour(tmp_path, kind)
        assert all(
            pq.read_table(pa.BufferReader(each)).num_rows == 0
            for each in hour.octets([hour.file([])]).values()
        )


def test_the_example_is_that_of_the_first_by_ms_and_number(tmp_path: Path) -> None:
    """Check that the 64-bit numbers of ids are compared as numbers."""
    large = (1 << 64) - 1
    rows = [
        letter(0, id=ids(0, number), error=f"no {number}", pattern="no 0") for number in (large, 1 << 20, 9)
    ]
    (found,) = Hour(tmp_path, Kind.DEAD).rows("failures", *rows)
    assert (found["example_id"], found["example"], found["count"]) == (ids(0, 9), "no 9", 3)
    (found,) = Hour(tmp_path, Kind.DEAD).rows("failures", *rows[:2])
    assert (found["example_id"], found["example"]) == (ids(0, 1 << 20), f"no {1 << 20}")


@pytest.mark.parametrize("name", NAMED_BY)
def test_only_what_has_the_same_name_is_a_repeat(tmp_path: Path, name: str) -> None:
    first = worked(1000, "orders", 1, **{"in": 5})
    again = {**first, "id": ids(1000, 1)}
    other = {**again, "id": ids(1000, 2), name: {"n": 2, "kind": "edge"}.get(name, "other")}
    other |= dict.fromkeys(("connections", "opened", "received_octets", "sent_octets"), 0)
    rows = Hour(tmp_path, Kind.SAMPLES).rows("traffic", again, first, other)
    assert sum(row["in"] for row in rows) == (5 if name == "kind" else 10)


def test_a_repeat_with_another_content_counts_as_the_first_said(tmp_path: Path) -> None:
    first = worked(1000, "orders", 1, **{"in": 5})
    (row,) = Hour(tmp_path, Kind.SAMPLES).rows(
        "traffic", {**worked(2000, "orders", 1), "in": 7}, first, looked(0)
    )
    assert row["in"] == 5


@pytest.mark.parametrize(
    ("before", "looks", "added"),
    [
        ([], [(0, "4", 10)], 0),  # only the base
        ([], [(0, "4", 10), (1, "4", 13)], 3),
        ([(-60_000, "4", 8)], [(0, "4", 10)], 2),
        ([(-60_000, "3", 8)], [(0, "4", 10)], 10),  # created again
        ([], [(0, "4", 10), (1, "4", 4), (2, "4", 5)], 1),  # the store lost data
        ([], [(0, "4", 10), (1, "5", 4)], 4),
    ],
)
def test_what_a_counter_rose_by(
    tmp_path: Path, before: list[tuple[int, str, int]], looks: list[tuple[int, str, int]], added: int
) -> None:
    def rows(of: list[tuple[int, str, int]]) -> tuple[Row, ...]:
        return tuple(looked(ms, qid=qid, added=count) for ms, qid, count in of)

    found = Hour(tmp_path, Kind.SAMPLES).rows("depths", *rows(looks), before=rows(before))
    assert [row["added"] for row in found] == [added]


def test_a_first_look_says_how_old_a_queue_is(tmp_path: Path) -> None:
    """Check that a store's first queues count from 0 too; older files lack the age (docs/store.md, "Samples")."""
    hour = Hour(tmp_path, Kind.SAMPLES)
    looks = [looked(0, added=10, age_ms=5), looked(1, added=12), looked(2, "old", "5", added=7)]
    rows = hour.rows("depths", *looks)
    assert {row["queue"]: row["added"] for row in rows} == {"orders": 12, "old": 0}
    name = hour.file(looks)
    pq.write_table(pq.read_table(tmp_path / name).drop_columns(["age_ms"]), tmp_path / "old.parquet")
    found = pq.read_table(pa.BufferReader(hour.octets(["old.parquet"])["depths"])).to_pylist()
    assert {row["queue"]: row["added"] for row in found} == {"orders": 2, "old": 0}


@pytest.mark.parametrize(
    ("age_ms", "added"), [(0, 13), (60_000, 13), (3_660_000, 13), (3_660_001, 3), (604_800_000, 3)]
)
def test_a_life_of_many_hours_is_no_hours(tmp_path: Path, age_ms: int, added: int) -> None:
    """Check a queue whose first sample is late, as with samples switched off: the hours of its messages are unknown."""
    first = looked(60_000, added=10, age_ms=age_ms)
    others = looked(-600_000, "other", "5"), looked(60_000, "other", "5")
    rows = Hour(tmp_path, Kind.SAMPLES).rows(
        "depths", *others[1:], first, looked(70_000, added=13), before=others[:1]
    )
    assert {row["queue"]: row["added"] for row in rows}["orders"] == added


def test_a_queue_that_comes_long_after_others_is_new(tmp_path: Path) -> None:
    """Check a late first sample: all queues are sampled every five minutes, so this one is new."""
    late = looked(600_001, "new", "5", added=10)
    soon = looked(600_000, "soon", "6", added=10)
    elsewhere = looked(3_000_000, "there", "7", added=10, domain="other")
    rows = Hour(tmp_path, Kind.SAMPLES).rows("depths", looked(0), soon, late, elsewhere)
    assert {row["queue"]: row["added"] for row in rows} == {"orders": 0, "soon": 0, "new": 10, "there": 0}
