"""Test compaction: which files a run joins and which it keeps, without duplicated rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from services.analytics import compaction
from services.analytics.run import run
from tests.analytics.spark.test_archive import named, rows, settings
from tests.redis_stream.entries import HOUR_MS, Entries


def test_small_files_are_joined_and_those_that_are_large_or_of_a_newer_program_stay(
    spark: SparkSession, store: Entries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    died = store.now_ms() - HOUR_MS

    def added(name: str, letters: int) -> list[str]:
        """Return the names of the files that the run has added."""
        for _ in range(letters):
            store.letter("a", died)
        run(spark, settings(store.server, tmp_path, name))
        return [path.name for path in files(tmp_path) if path not in kept]

    kept: dict[Path, bytes] = {}
    for name in ("r0", "r1"):
        added(name, 40)
        kept |= {path: path.read_bytes() for path in files(tmp_path)}
    monkeypatch.setattr(compaction, "MANY", 1)
    monkeypatch.setattr(compaction, "ROWS_A_FILE", 80)  # so these are half full
    assert added("r2", 1) == ["r2-0000.parquet"]
    assert added("r3", 1) == ["r3-c0000.parquet"]
    kept |= {path: with_column(path) for path in files(tmp_path) if path not in kept}
    assert added("r4", 1) == ["r4-c0000.parquet"]
    assert {path: path.read_bytes() for path in kept} == kept
    wanted = sorted((row["queue"], row["id"]) for row in store.letters)
    assert named(rows(tmp_path / "archive/dead")) == wanted
    assert sum(row["count"] for row in rows(tmp_path / "aggregates/deaths")) == len(wanted)


def files(output: Path) -> list[Path]:
    return sorted((output / "archive/dead").rglob("*.parquet"))


def with_column(path: Path) -> bytes:
    """Write the file with an additional column, as a later version might, and return its octets."""
    found = pq.ParquetFile(path).read()
    pq.write_table(found.append_column("weight", pa.nulls(len(found), pa.int64())), path)
    return path.read_bytes()
