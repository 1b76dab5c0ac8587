"""Test what the next run reads, what is quarantined, and what is redacted; test_tables.py compares every row."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from services.analytics import job, preflight
from services.analytics.settings import Settings
from services.store.model.keys import DomainKeys
from tests.analytics.spark.carried_out import carry_out, named, rows
from tests.redis_stream.entries import Entries


def test_the_next_run_reads_what_came_since_without_or_with_checkpoint(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    begin_a_checkpoint(tmp_path)
    letters = [("a", store.letter("a", store.now_ms() - 1000)) for _ in range(3)]
    carry_out(spark, store, tmp_path, "r1")
    letters += [(queue, store.letter(queue, store.now_ms() - 1000)) for queue in ("a", "new")]
    assert carry_out(spark, store, tmp_path, "r2")["dead"] == 2
    assert named(rows(tmp_path, "bronze/dead")) == sorted(letters)
    shutil.rmtree(tmp_path / "_checkpoints")
    letters.append(("a", store.letter("a", store.now_ms() - 1000)))
    assert carry_out(spark, store, tmp_path, "r3")["dead"] == 1
    assert named(rows(tmp_path, "bronze/dead")) == sorted(letters)
    forget_the_last_batch(tmp_path)
    letters.append(("new", store.letter("new", store.now_ms() - 1000)))
    carry_out(spark, store, tmp_path, "r4")
    assert named(rows(tmp_path, "bronze/dead")) == sorted(letters)
    deaths = rows(tmp_path, "gold/deaths")
    assert sum(row["count"] for row in deaths) == len(letters)


def begin_a_checkpoint(output: Path) -> None:
    """Leave what a run leaves that was killed when it wrote the plan of its first batch."""
    checkpoint = output / "_checkpoints/abc/dead"
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets/.0.8bea4b04.tmp").touch()
    (checkpoint / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))


def forget_the_last_batch(output: Path) -> None:
    """Leave what a run leaves that was killed when it had planned the first batch of a checkpoint."""
    (output / "_checkpoints/abc/dead/commits/0").unlink()
    max((output / "bronze/dead/_delta_log").glob("*.json")).unlink()


def test_a_run_that_is_done_is_repeated_only_to_compute_all_hours(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    died = store.now_ms() - 1000
    store.letter("a", died)
    carry_out(spark, store, tmp_path)
    store.letter("a", died)
    carry_out(spark, store, tmp_path)
    assert len(rows(tmp_path, "bronze/dead")) == 1
    shutil.rmtree(tmp_path / "gold/origins")
    carry_out(spark, store, tmp_path, "r2")
    assert [row["count"] for row in rows(tmp_path, "gold/origins")] == [2]
    shutil.rmtree(tmp_path / "gold/deaths")
    settings = {"store": store.server.url, "output": str(tmp_path), "run": "r2", "recompute": True}
    run_again(spark, settings)
    assert [row["count"] for row in rows(tmp_path, "gold/deaths")] == [2]


def run_again(spark: SparkSession, told: dict[str, Any]) -> None:
    settings = Settings(**told)
    job.run(settings, preflight.look(settings), lambda: spark)


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
