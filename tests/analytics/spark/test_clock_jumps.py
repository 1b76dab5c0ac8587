"""Test jumps of the store's clock and back: nothing is removed unasked, and the tables continue."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.analytics.clocks import ClockWrong
from services.analytics.hours import hour_at
from services.analytics.run import run
from services.analytics.tables import DEATHS
from services.store.catalogue.reading import StreamReader
from tests.analytics.spark.test_aggregates import table
from tests.analytics.spark.test_archive import rows, settings
from tests.redis_stream.entries import HOUR_MS, Entries

Jump = Callable[[int], None]


@pytest.fixture
def jump(monkeypatch: pytest.MonkeyPatch) -> Jump:
    """Move the store's clock by a number of hours."""
    right = StreamReader.now_ms
    return lambda hours: monkeypatch.setattr(
        StreamReader, "now_ms", lambda self: right(self) + hours * HOUR_MS
    )


def dead(output: Path) -> int:
    return sum(row["count"] for row in table(output, DEATHS).values())


def test_a_jump_is_refused_and_what_is_kept_stays(
    spark: SparkSession, store: Entries, tmp_path: Path, jump: Jump
) -> None:
    store.letter("a", store.now_ms() - 2 * HOUR_MS)
    run(spark, settings(store.server, tmp_path, "r1", retention_days=7))
    jump(30 * 24)
    with pytest.raises(ClockWrong, match="--accept-clock"):
        run(spark, settings(store.server, tmp_path, "r2", retention_days=7))
    assert not (tmp_path / "runs/r2").exists()
    assert len(rows(tmp_path / "archive")) == dead(tmp_path) == 1
    jump(0)
    store.letter("a", store.now_ms())
    run(spark, settings(store.server, tmp_path, "r2", retention_days=7))
    assert dead(tmp_path) == 2


def test_who_goes_on_in_a_jump_has_all_hours_when_the_clock_is_back(
    spark: SparkSession, store: Entries, tmp_path: Path, jump: Jump
) -> None:
    """Check that hours wrongly closed by a jump are computed from the archive when the clock is right again."""
    now = store.now_ms()
    store.letter("a", now - 2 * HOUR_MS)
    run(spark, settings(store.server, tmp_path, "r1"))
    jump(96)
    store.letter("a", now + 96 * HOUR_MS)
    run(spark, replace(settings(store.server, tmp_path, "r2"), accept_clock=True))
    store.letter("a", now - HOUR_MS)
    run(spark, replace(settings(store.server, tmp_path, "r3"), accept_clock=True))
    assert dead(tmp_path) == 2
    jump(0)
    store.letter("a", now)
    with pytest.raises(ClockWrong, match="already"):
        run(spark, settings(store.server, tmp_path, "r4"))
    run(spark, replace(settings(store.server, tmp_path, "r4"), accept_clock=True))
    assert dead(tmp_path) == 4
    state = json.loads((tmp_path / "state.json").read_text())
    assert state["skipped"] == []
    assert state["newest"] <= hour_at(store.now_ms())
    for _ in range(3):
        store.letter("a", store.now_ms())
    run(spark, settings(store.server, tmp_path, "r5"))
    assert dead(tmp_path) == 7
