"""Test that old data is removed, and nothing that is to be kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.analytics.files import Files
from services.analytics.planning import freeze
from services.analytics.publish import done_file, plan_file
from services.analytics.run import run
from services.analytics.state import State
from services.analytics.tables import DEATHS
from tests.analytics.spark.test_aggregates import table
from tests.analytics.spark.test_archive import named, rows, settings
from tests.redis_stream.entries import HOUR_MS, Entries


def test_what_is_too_old_is_removed(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    now = store.now_ms()
    store.letter("a", now - 40 * HOUR_MS)
    kept = store.letter("a", now)
    run(spark, settings(store.server, tmp_path, "r1"))
    assert len(rows(tmp_path / "archive")) == 2
    store.letter("a", now - 50 * HOUR_MS)
    run(spark, settings(store.server, tmp_path, "r2", retention_days=1))
    assert named(rows(tmp_path / "archive")) == [("a", kept)]
    assert len(table(tmp_path, DEATHS)) == 1
    first = (datetime.fromtimestamp(now / 1000, UTC) - timedelta(days=1)).strftime("day=%Y-%m-%d")
    days = [path for path in tmp_path.rglob("day=*") if not path.is_relative_to(tmp_path / "runs")]
    assert days
    assert all(path.name >= first for path in days)


@pytest.mark.parametrize(("then", "now", "is_kept"), [(0, 1, False), (1, 7, True)])
def test_a_run_that_was_killed_is_finished_whatever_is_kept_now(
    spark: SparkSession, store: Entries, tmp_path: Path, then: int, now: int, is_kept: bool
) -> None:
    """Check that it removes nothing that is kept now; the following run removes what is too old now."""
    now_ms, files = store.now_ms(), Files(str(tmp_path))
    old, new = store.letter("a", now_ms - 40 * HOUR_MS), store.letter("a", now_ms)
    killed = freeze(settings(store.server, tmp_path, "r1", retention_days=then), files, State())
    files.write_json(plan_file("r1"), killed.to_json())
    run(spark, settings(store.server, tmp_path, "r2", retention_days=now))
    assert all(files.exists(done_file(name)) for name in ("r1", "r2"))
    assert named(rows(tmp_path / "archive")) == sorted([("a", new), *([("a", old)] if is_kept else [])])
