"""Test the archive, the quarantine, and the positions in the state."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgpack
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from services.analytics.files import Files
from services.analytics.lock import Lock, Locked
from services.analytics.cleaning.cleaning import archive_schema
from services.analytics.run import run
from services.analytics.settings import Settings, Shape
from services.redis_stream.schema import Kind
from services.store.model.keys import DomainKeys
from tests.redis_stream.entries import HOUR_MS, Entries, fill_letters, fill_samples
from tests.servers import Server


def settings(server: Server, output: Path, name: str = "r1", **told: Any) -> Settings:
    return Settings(server.url, str(output), name, Shape(**told), lock_s=5, patience_s=2)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [
        row for path in sorted(folder.rglob("*.parquet")) for row in pq.ParquetFile(path).read().to_pylist()
    ]


def named(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted((row["queue"], row["id"]) for row in found)


def test_every_record_is_in_the_archive_once_in_its_hour(
    spark: SparkSession, store: Entries, tmp_path: Path, chance: random.Random
) -> None:
    fill_letters(store, chance, 200, 5)
    fill_samples(store, chance, 10, 5)
    done = run(spark, settings(store.server, tmp_path))
    assert done["dead"] == {"read": 200, "archived": 200, "quarantined": 0, "gone": 0}
    assert done["samples"] == {
        "read": len(store.samples),
        "archived": len(store.samples),
        "quarantined": 0,
        "lost": 0,
    }
    found = rows(tmp_path / "archive/dead")
    assert named(found) == sorted((each["queue"], each["id"]) for each in store.letters)
    for path in (tmp_path / "archive/dead").rglob("*.parquet"):
        for row in pq.ParquetFile(path).read().to_pylist():
            assert path.parent == tmp_path / row["died"].strftime("archive/dead/day=%Y-%m-%d/hour=%H")
    assert all(row["body"] is None and len(row["fingerprint"]) == 16 for row in found)
    assert sorted(row["id"] for row in rows(tmp_path / "archive/samples")) == sorted(
        s["id"] for s in store.samples
    )
    state = json.loads((tmp_path / "state.json").read_text())
    assert state["last_run"] == "r1"
    assert state["streams"][DomainKeys("main").samples] == store.samples[-1]["id"]
    assert sorted(path.name for path in (tmp_path / "runs/r1").iterdir()) == ["done.json", "plan.json"]


def test_the_next_run_reads_what_came_since(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    first = store.letter("a", store.now_ms() - 1000)
    run(spark, settings(store.server, tmp_path, "r1"))
    second, third = store.letter("a", store.now_ms() - 1000), store.letter("new", store.now_ms() - 1000)
    assert run(spark, settings(store.server, tmp_path, "r2"))["dead"]["read"] == 2
    assert named(rows(tmp_path / "archive")) == sorted([("a", first), ("a", second), ("new", third)])
    assert run(spark, settings(store.server, tmp_path, "r3"))["dead"]["read"] == 0


def test_a_run_that_is_done_is_not_done_again(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    store.letter("a", store.now_ms() - 1000)
    done = run(spark, settings(store.server, tmp_path))
    store.letter("a", store.now_ms() - 1000)
    assert run(spark, settings(store.server, tmp_path)) == done
    assert len(rows(tmp_path / "archive")) == 1


def test_run_over_an_empty_store_has_an_empty_report(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    store.queue("never used")
    done = run(spark, settings(store.server, tmp_path))
    assert (done["dead"]["read"], done["samples"]["read"], done["hours"]) == (0, 0, [])
    assert rows(tmp_path) == []
    assert json.loads((tmp_path / "reports/latest.json").read_text())["period"]["first"] == ""
    assert "No records yet" in (tmp_path / "reports/latest.html").read_text()


def test_what_cannot_be_read_is_in_the_quarantine_with_its_fields(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    now = store.now_ms()
    good = store.letter("a", now - 1000)
    store.add(store.queue("a"), {"reason": "no other field"}, "*")
    store.letter("a", now + 3 * HOUR_MS)
    store.letter("a", 915_148_800_000)
    store.add(DomainKeys("main").samples, {"v": "9", "kind": "queue"}, "*")
    done = run(spark, settings(store.server, tmp_path))
    assert done["dead"] == {"read": 4, "archived": 1, "quarantined": 3, "gone": 0}
    assert named(rows(tmp_path / "archive")) == [("a", good)]
    found = rows(tmp_path / "quarantine/dead/run=r1")
    assert [row["problem"].split(":")[0] for row in found][1:] == ["its clock", "its clock"]
    assert "it has no" in found[0]["problem"]
    (sample,) = rows(tmp_path / "quarantine/samples/run=r1")
    assert "v is '9'" in sample["problem"]
    for kind, number in (("dead", 3), ("samples", 1)):
        table = spark.read.parquet(str(tmp_path / "quarantine" / kind))
        assert (table.count(), table.select("run").distinct().collect()) == (number, [("r1",)])
        assert table.columns == [*archive_schema(Kind(kind)).names, "run"]


def test_secrets_are_in_no_file(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    now = store.now_ms()
    store.letter(
        "a",
        now,
        body="x" * 5000 + "card 1234-5678 end",
        error="card 1234-5678 refused",
        note="card 1234-5678",
        attributes=msgpack.packb({"card 1234-5678": ["paid by card 1234-5678"]}),
    )
    store.letter("a", now, body=b"\xff\xfecard 1234-5678")
    store.add(store.queue("a"), {"reason": "card 1234-5678"}, "*")
    store.letter("a", now, acquired="card 1234-5678")
    store.letter("a", now, failed="x" * 30 + "card 1234-5678")  # the secret is cut in two
    store.letter("a", now, first="card\t1234-5678'")
    store.sample("edge", now, edge="tmq", process="p", n="card 1234-5678")
    run(spark, settings(store.server, tmp_path, bodies="full", redact=(r"card\s\d+-\d+",)))
    found = rows(tmp_path / "archive")
    assert [row["body"] for row in found] == [b"x" * 5000 + b"[redacted] end", b"\xff\xfe[redacted]"]
    assert (found[0]["error"], found[0]["note"], found[0]["pattern"]) == (
        "[redacted] refused",
        "[redacted]",
        "[redacted] refused",
    )
    assert msgpack.unpackb(found[0]["attributes"]) == {"[redacted]": ["paid by [redacted]"]}
    assert b"1234" not in b"".join(str(row).encode() for row in rows(tmp_path))


def test_bodies_are_cut_to_the_wanted_length(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    store.letter("a", store.now_ms(), body="abcdef")
    run(spark, settings(store.server, tmp_path, bodies="3"))
    (row,) = rows(tmp_path / "archive")
    assert (row["body"], row["size"]) == (b"abc", 6)


def test_two_runs_do_not_work_in_one_output(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    with Lock(Files(str(tmp_path)), 1), pytest.raises(Locked, match="another run is active"):
        run(spark, settings(store.server, tmp_path))
    assert run(spark, settings(store.server, tmp_path))["run"] == "r1"
