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


def files(output: Path) -> list[Path]:
    return sorted((output / "archive/dead").rglob("*.parquet"))


def with_column(path: Path) -> bytes:
    """As a program of later might have written it; its octets."""
    found = pq.ParquetFile(path).read()
    pq.write_table(found.append_column("weight", pa.nulls(len(found), pa.int64())), path)
    return path.read_bytes()
