"""Test runs in which something is wrong: a clear failure, nothing incomplete visible, then the right result."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.analytics.places import OutputError
from services.analytics.run import run
from services.analytics.settings import Settings, SettingsError
from services.analytics.tables import DEATHS
from services.store.model.errors import StoreUnavailable
from services.store.model.keys import DomainKeys
from tests.analytics.spark.test_aggregates import table
from tests.analytics.spark.test_archive import rows, settings
from tests.redis_stream.entries import HOUR_MS, Entries, fill_samples


def test_late_records_count_in_their_hour(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    now = store.now_ms()
    store.letter("a", now - 3 * HOUR_MS)
    store.letter("a", now)
    run(spark, settings(store.server, tmp_path, "r1"))
    store.letter("a", now - 3 * HOUR_MS)
    store.letter("a", now - 60 * HOUR_MS)
    done = run(spark, settings(store.server, tmp_path, "r2"))
    late = datetime.fromtimestamp(now / 1000, UTC) - timedelta(hours=3)
    assert done["hours"] == [late.strftime("%Y-%m-%dT%H")]  # 60 hours ago is closed: archived, not computed
    counts = {key[:2]: row["count"] for key, row in table(tmp_path, DEATHS).items()}
    assert counts[late.strftime("%Y-%m-%d"), late.strftime("%H")] == 2
    assert len(rows(tmp_path / "archive/dead")) == 4
    assert done["late"] == 1
    assert json.loads((tmp_path / "reports/latest.json").read_text())["missing"]["late"] == 1


def test_a_store_that_is_away_is_said_to_be(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    away = Settings("redis://127.0.0.1:1", str(tmp_path), "r1", patience_s=0.1)
    with pytest.raises(StoreUnavailable):
        run(spark, away)
    assert not (tmp_path / "runs/r1").exists()
    assert not (tmp_path / "runs/lock.json").exists()


def test_samples_that_were_trimmed_unread_are_a_loss(
    spark: SparkSession, store: Entries, tmp_path: Path, chance: random.Random
) -> None:
    fill_samples(store, chance, 3, 1)
    run(spark, settings(store.server, tmp_path, "r1"))
    before = len(store.samples)
    known = {"edge": "tmq", "process": "p", "ms": 1, "connections": 1, "opened": 0, "refused": ""}
    for number in range(10):
        store.sample("edge", store.now_ms(), n=number, received_octets=0, sent_octets=0, **known)
    store.server.call("XTRIM", DomainKeys("main").samples, "MAXLEN", 4)
    with pytest.raises(Exception, match="trimmed"):
        run(spark, settings(store.server, tmp_path, "r2"))
    assert len(rows(tmp_path / "archive/samples")) == before
    state = json.loads((tmp_path / "state.json").read_text())
    del state["missing"]  # as written by an older version
    (tmp_path / "state.json").write_text(json.dumps({**state, "version": 2}))
    run(spark, settings(store.server, tmp_path, "r3", fail_on_loss=False))
    done = json.loads((tmp_path / "runs/r2/done.json").read_text())  # the failed plan is carried out first
    assert done["samples"] == {"read": 4, "archived": 4, "quarantined": 0, "lost": 6}
    told = json.loads((tmp_path / "reports/latest.json").read_text())
    assert (told["run"], told["records"]["samples"]["lost"]) == ("r3", 0)
    assert told["missing"] == {
        **{"lost_samples": 6, "lost_streams": 0, "quarantined_dead": 0, "quarantined_samples": 0, "late": 0}
    }
    assert "Incomplete data" in (tmp_path / "reports/latest.html").read_text()


def test_letters_brought_back_before_they_were_read_are_gone(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    now = store.now_ms()
    first, _ = store.letter("a", now), store.letter("a", now)
    store.server.call("XDEL", store.queue("a"), first)
    done = run(spark, settings(store.server, tmp_path))
    assert done["dead"] == {"read": 1, "archived": 1, "quarantined": 0, "gone": 1}


def test_an_output_that_is_a_file_is_told(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError, match="out"):
        run(spark, settings(store.server, tmp_path / "out"))


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 200])
def test_a_run_has_a_name_that_is_no_path(name: str) -> None:
    with pytest.raises(SettingsError, match="run id"):
        Settings("redis://h", "/o", name)
