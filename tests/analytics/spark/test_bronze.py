"""Test that every entry of the store is in bronze exactly once, in its hour, and unreadable ones in quarantine too."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from services.store.model.keys import DomainKeys
from tests.analytics.spark.carried_out import carry_out, named, rows
from tests.redis_stream.entries import Entries, fill_letters, fill_samples


def test_every_entry_is_in_bronze_once_in_its_hour(
    spark: SparkSession, store: Entries, tmp_path: Path, chance: random.Random
) -> None:
    fill_letters(store, chance, 100, 3)
    fill_samples(store, chance, 8, 3)
    run = carry_out(spark, store, tmp_path)
    assert (run["dead"], run["dead_quarantined"], run["dead_gone"]) == (100, 0, 0)
    assert (run["samples"], run["samples_quarantined"], run["samples_lost"]) == (len(store.samples), 0, 0)
    dead = rows(tmp_path, "bronze/dead")
    assert named(dead) == sorted((each["queue"], each["id"]) for each in store.letters)
    for row in dead:
        assert f"{row['day']}T{row['hour']}" == f"{row['died']:%Y-%m-%dT%H}"
        assert row["body"] is None
        assert len(row["fingerprint"]) == 16
        assert row["dataset"] == "abc"
    samples = rows(tmp_path, "bronze/samples")
    assert sorted(row["id"] for row in samples) == sorted(each["id"] for each in store.samples)


def test_the_next_run_reads_what_came_since_without_or_with_checkpoint(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    letters = [("a", store.letter("a", store.now_ms() - 1000)) for _ in range(3)]
    carry_out(spark, store, tmp_path, "r1")
    letters += [(queue, store.letter(queue, store.now_ms() - 1000)) for queue in ("a", "new")]
    assert carry_out(spark, store, tmp_path, "r2")["dead"] == 2
    assert named(rows(tmp_path, "bronze/dead")) == sorted(letters)
    shutil.rmtree(tmp_path / "_checkpoints")
    letters.append(("a", store.letter("a", store.now_ms() - 1000)))
    assert carry_out(spark, store, tmp_path, "r3")["dead"] == 1
    assert named(rows(tmp_path, "bronze/dead")) == sorted(letters)
    deaths = rows(tmp_path, "gold/deaths")
    assert sum(row["count"] for row in deaths) == len(letters)


def test_a_run_that_is_done_is_not_repeated(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    store.letter("a", store.now_ms() - 1000)
    carry_out(spark, store, tmp_path)
    store.letter("a", store.now_ms() - 1000)
    carry_out(spark, store, tmp_path)
    assert len(rows(tmp_path, "bronze/dead")) == 1


def test_unreadable_entries_are_in_quarantine_with_the_reason(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    now_ms = store.now_ms()
    store.letter("a", now_ms - 1000)
    late = store.letter("a", now_ms + 10 * 86_400_000)
    odd = store.add(store.queue("a"), {"reason": "expired"}, "*")
    store.add(DomainKeys("main").samples, {"v": 9, "kind": "queue"}, f"{now_ms - 500}-*")
    run = carry_out(spark, store, tmp_path)
    assert (run["dead"], run["dead_quarantined"], run["samples"], run["samples_quarantined"]) == (3, 2, 1, 1)
    found = {row["id"]: row["problem"] for row in rows(tmp_path, "quarantine/dead")}
    assert set(found) == {late, odd}
    assert found[late].startswith("its clock: died is ")
    assert found[odd].startswith("it has no ")
    (sample,) = rows(tmp_path, "quarantine/samples")
    assert sample["problem"] == "v is '9': this program reads version 1"
    assert sum(row["count"] for row in rows(tmp_path, "gold/deaths")) == 1


def test_secrets_are_redacted_and_bodies_shortened(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    store.letter("a", store.now_ms() - 1000, body=b"token=s3cret and more", error="bad token=s3cret")
    store.add(store.queue("a"), {"reason": "token=s3cret", "body": "token=s3cret"}, "*")
    carry_out(spark, store, tmp_path, bodies="12", redact=("token=[a-z0-9]+",))
    (row,) = [each for each in rows(tmp_path, "bronze/dead") if each["problem"] is None]
    assert (row["body"], row["error"]) == (b"[redacted] a", "bad [redacted]")
    assert not any(b"s3cret" in path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file())
    assert "s3cret" not in str(rows(tmp_path, "bronze/dead")) + str(rows(tmp_path, "quarantine/dead"))
