"""Hours that are compacted: what a run joins, what it leaves as it is, and that no row is there twice."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from services.analytics import compaction
from services.analytics.run import run
from tests.analytics.spark.entries import HOUR_MS, Entries
from tests.analytics.spark.test_archive import named, rows, settings


def test_files_of_a_newer_program_stay_and_those_beside_them_are_joined(
    spark: SparkSession,
    store: Entries,
    tmp_path: Path,
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    died = store.now_ms() - HOUR_MS
    for name in ("r0", "r1"):
        for number in range(20):
            store.letter("ab"[number % 2], died)
        run(spark, settings(store.server, tmp_path, name))
    newer = {path: with_column(path) for path in chance.sample(files(tmp_path), 1)}
    monkeypatch.setattr(compaction, "MANY", 1)
    for number in range(20):
        store.letter("ab"[number % 2], died)
    run(spark, settings(store.server, tmp_path, "r2"))
    for path, octets in newer.items():
        assert path.read_bytes() == octets
    assert [path.name for path in files(tmp_path) if path not in newer] == ["r2-c0000.parquet"]
    assert named(rows(tmp_path / "archive/dead")) == sorted(
        (row["queue"], row["id"]) for row in store.letters
    )


@pytest.mark.parametrize("limit", ["rows", "octets"])
def test_a_file_that_is_half_full_is_written_no_more(
    spark: SparkSession,
    store: Entries,
    tmp_path: Path,
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
) -> None:
    """However many there are: each run that adds to their hour would write all of them anew."""
    died = store.now_ms() - HOUR_MS
    for name in ("r0", "r1", "r2"):
        for _ in range(40):
            store.letter("a", died, body=chance.randbytes(1000))
        run(spark, settings(store.server, tmp_path, name, bodies="full"))
    large = {path: path.read_bytes() for path in files(tmp_path)}
    assert len(large) == 3
    monkeypatch.setattr(compaction, "MANY", 1)
    if limit == "rows":
        monkeypatch.setattr(compaction, "ROWS_A_FILE", 80)
    else:
        monkeypatch.setattr(compaction, "FILE_OCTETS", 2 * min(map(len, large.values())))
    names = []
    for name in ("r3", "r4", "r5", "r6"):
        store.letter("a", died)
        run(spark, settings(store.server, tmp_path, name))
        names.append([path.name for path in files(tmp_path) if path not in large])
    assert names == [["r3-0000.parquet"], *([f"{name}-c0000.parquet"] for name in ("r4", "r5", "r6"))]
    assert {path: path.read_bytes() for path in large} == large
    assert named(rows(tmp_path / "archive/dead")) == sorted(
        (row["queue"], row["id"]) for row in store.letters
    )
    assert sum(row["count"] for row in rows(tmp_path / "aggregates/deaths")) == len(store.letters)


def files(output: Path) -> list[Path]:
    return sorted((output / "archive/dead").rglob("*.parquet"))


def with_column(path: Path) -> bytes:
    """As a program of later might have written it; its octets."""
    found = pq.ParquetFile(path).read()
    pq.write_table(found.append_column("weight", pa.nulls(len(found), pa.int64())), path)
    return path.read_bytes()
