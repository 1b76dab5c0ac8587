"""Test runs in which something is wrong: a clear error, nothing incomplete, then the right result."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.analytics.clocks import ClockWrong
from services.analytics.delta import TableError
from services.analytics.output import NoOutput, check
from services.analytics.preflight import OtherStore
from services.redis_stream.losses import DataLoss
from services.store.model.errors import StoreUnavailable
from services.store.model.keys import DomainKeys, RegistryKeys
from tests.analytics.spark.carried_out import carry_out, named, rows
from tests.redis_stream.entries import HOUR_MS, Entries, fill_samples

EDGE = {"edge": "tmq", "process": "p", "ms": 1, "connections": 1, "opened": 0, "refused": ""}
FLOWS = {"received_octets": 0, "sent_octets": 0}


def test_late_records_count_in_their_hour(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    now = store.now_ms()
    store.letter("a", now - 3 * HOUR_MS)
    store.letter("a", now)
    carry_out(spark, store, tmp_path, "r1")
    store.letter("a", now - 3 * HOUR_MS)
    store.letter("a", now - 60 * HOUR_MS)
    carry_out(spark, store, tmp_path, "r2")
    counts = sorted((row["day"], row["hour"], row["count"]) for row in rows(tmp_path, "gold/deaths"))
    assert [count for _, _, count in counts] == [1, 2, 1]


def test_a_store_that_is_away_is_said_to_be_before_anything_is_written(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    url = store.server.url.replace(str(store.server.port), "1")
    with pytest.raises(StoreUnavailable):
        carry_out(spark, store, tmp_path / "out", store=url, patience_s=0.1)
    assert not (tmp_path / "out").exists()


def test_samples_that_were_trimmed_unread_are_a_loss(
    spark: SparkSession, store: Entries, tmp_path: Path, chance: random.Random
) -> None:
    fill_samples(store, chance, 3, 1)
    carry_out(spark, store, tmp_path, "r1")
    before = len(store.samples)
    for number in range(10):
        store.sample("edge", store.now_ms(), n=number, **FLOWS, **EDGE)
    store.server.call("XTRIM", DomainKeys("main").samples, "MAXLEN", 4)
    with pytest.raises(Exception, match="trimmed"):
        carry_out(spark, store, tmp_path, "r2")
    assert len(rows(tmp_path, "bronze/samples")) == before
    run = carry_out(spark, store, tmp_path, "r3", fail_on_loss=False)
    assert (run["samples"], run["samples_lost"]) == (4, 6)
    told = json.loads((tmp_path / "reports/latest.json").read_text())
    assert told["missing"]["lost_samples"] == 6
    assert "Incomplete data" in (tmp_path / "reports/latest.html").read_text()


def test_letters_brought_back_before_they_were_read_are_gone(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    now = store.now_ms()
    first, _ = store.letter("a", now), store.letter("a", now)
    store.server.call("XDEL", store.queue("a"), first)
    run = carry_out(spark, store, tmp_path)
    assert (run["dead"], run["dead_gone"]) == (1, 1)


def test_an_output_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(NoOutput, match="out"):
        check(str(tmp_path / "out"))


def test_another_store_is_refused_and_read_from_its_beginning_when_that_is_wanted(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    now = store.now_ms()
    old = [("a", store.letter("a", now)) for _ in range(3)]
    carry_out(spark, store, tmp_path, "r1")
    store.server.clear()
    other = Entries(store.server)
    other.server.call("SET", RegistryKeys().epoch, "other.1")
    new = [("a", other.letter("a", now)) for _ in range(5)]
    with pytest.raises(OtherStore, match=r"dataset abc, but this store has other.*--accept-store"):
        carry_out(spark, other, tmp_path, "r2")
    assert carry_out(spark, other, tmp_path, "r3", accept_store=True)["dead"] == 5
    assert named(rows(tmp_path, "bronze/dead")) == sorted(old + new)
    assert carry_out(spark, other, tmp_path, "r4")["dead"] == 0


def test_a_stream_of_samples_that_vanished_is_a_loss(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    store.sample("edge", store.now_ms(), n=1, **FLOWS, **EDGE)
    carry_out(spark, store, tmp_path, "r1")
    store.server.call("DEL", DomainKeys("main").samples)
    with pytest.raises(DataLoss, match="no longer exists"):
        carry_out(spark, store, tmp_path, "r2")
    assert carry_out(spark, store, tmp_path, "r3", fail_on_loss=False)["streams_lost"] == 1


def test_a_clock_that_jumped_removes_nothing(
    spark: SparkSession, store: Entries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.letter("a", store.now_ms() - 1000)
    carry_out(spark, store, tmp_path, "r1", retention_days=2)
    jumped = store.now_ms() + 3 * 24 * HOUR_MS
    monkeypatch.setattr("services.store.catalogue.StreamReader.now_ms", lambda _: jumped)
    monkeypatch.setattr("time.time", lambda: jumped / 1000)
    with pytest.raises(ClockWrong, match="more than 2 days ago"):
        carry_out(spark, store, tmp_path, "r2", retention_days=2)
    assert len(rows(tmp_path, "bronze/dead")) == 1
    assert carry_out(spark, store, tmp_path, "r3", accept_clock=True)["now_ms"] == jumped


def test_a_table_of_a_newer_version_is_refused_before_anything_is_read(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    store.letter("a", store.now_ms() - 1000)
    carry_out(spark, store, tmp_path, "r1")
    spark.sql(f"ALTER TABLE delta.`{tmp_path}/gold/deaths` ADD COLUMNS (cost double)")
    store.letter("a", store.now_ms() - 1000)
    with pytest.raises(TableError, match=r"table deaths has columns .* cost; a newer version has written it"):
        carry_out(spark, store, tmp_path, "r2")
    assert len(rows(tmp_path, "bronze/dead")) == 1
