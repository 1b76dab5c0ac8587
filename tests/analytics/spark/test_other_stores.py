"""Test another store than before, and one restored from a copy: entries are read once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from services.analytics.planning import OtherStore
from services.analytics.run import run
from services.analytics.tables import DEATHS
from services.redis_stream.losses import DataLoss
from services.store.model.keys import RegistryKeys
from tests.analytics.spark.test_aggregates import table
from tests.analytics.spark.test_archive import named, rows, settings
from tests.redis_stream.entries import Entries

LATER_MS = 1_800_000
EDGE = {
    "edge": "tmq",
    "ms": 1,
    "connections": 1,
    "opened": 0,
    "received_octets": 0,
    "sent_octets": 0,
    "refused": "",
}


def letter_at(store: Entries, at: int, died: int) -> str:
    """Add a letter with a given id."""
    told: dict[str, Any] = {
        "reason": "expired",
        "enqueued": died,
        "died": died,
        "origin": "tmq 1",
        "acquired": 1,
    }
    told |= {"failed": 0, "first": 0, "last": 0, "error": "", "body": "x"}
    return store.add(store.queue("a"), told, f"{at}-0")


def test_another_store_is_read_from_its_beginning_when_that_is_wanted(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    now = store.now_ms()
    for number in range(3):
        letter_at(store, now + LATER_MS + number, now)
        store.sample("edge", now + LATER_MS + number, process="p", n=number, **EDGE)
    run(spark, settings(store.server, tmp_path, "r1"))
    store.server.clear()
    other = Entries(store.server)
    other.server.call("SET", RegistryKeys().epoch, "other.1")
    letters = [("a", other.letter("a", now)) for _ in range(50)]
    for number in range(50):
        other.sample("edge", now + number, process="q", n=number, **EDGE)
    other.server.call("XDEL", other.queue("a"), letters.pop()[1])
    for name in ("r2", "r3"):
        with pytest.raises(OtherStore, match=r"dataset abc, but this store has other.*--accept-store"):
            run(spark, settings(store.server, tmp_path, name, fail_on_loss=False))
    done = run(spark, replace(settings(store.server, tmp_path, "r4"), accept_store=True))
    assert done["dead"] == {"read": 49, "archived": 49, "quarantined": 0, "gone": 1}
    assert done["samples"] == {"read": 50, "archived": 50, "quarantined": 0, "lost": 0}
    assert {*letters} < {*named(rows(tmp_path / "archive/dead"))}
    assert run(spark, settings(store.server, tmp_path, "r5"))["dead"]["read"] == 0


def test_a_run_that_was_planned_for_one_store_is_not_carried_out_with_another(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    store.letter("a", store.now_ms())
    run(spark, settings(store.server, tmp_path, "r1"))
    (tmp_path / "runs/r1/done.json").unlink()
    store.server.call("SET", RegistryKeys().epoch, "other.1")
    with pytest.raises(OtherStore, match=r"run r1 was planned.*removing file://.*/runs/r1"):
        run(spark, settings(store.server, tmp_path, "r2"))


@pytest.mark.parametrize("kept", [0, 2])
def test_of_a_store_that_went_back_what_is_new_is_read_once(
    spark: SparkSession, store: Entries, tmp_path: Path, kept: int
) -> None:
    """Check a restored copy that has some of the read entries, followed by new ones with lower ids."""
    now = store.now_ms()
    old = [letter_at(store, now + LATER_MS * number, now) for number in range(4)]
    run(spark, settings(store.server, tmp_path, "r1"))
    store.server.call("DEL", store.queue("a"))
    for identifier in old[:kept]:
        letter_at(store, int(identifier.split("-")[0]), now)
    new = [letter_at(store, now + LATER_MS * max(0, kept - 1) + number, now) for number in range(1, 250)]
    with pytest.raises(DataLoss, match="the store lost data"):
        run(spark, settings(store.server, tmp_path, "r2"))
    done = run(spark, settings(store.server, tmp_path, "r2", fail_on_loss=False))
    assert done["dead"] == {"read": len(new), "archived": len(new), "quarantined": 0, "gone": 0}
    assert named(rows(tmp_path / "archive/dead")) == sorted(("a", each) for each in (*old, *new))
    assert done["lost_streams"] == [store.queue("a")]
    assert sum(row["count"] for row in table(tmp_path, DEATHS).values()) == len(new) + 4
    state = json.loads((tmp_path / "state.json").read_text())
    assert state["streams"][store.queue("a")] == new[-1]
    assert json.loads((tmp_path / "reports/latest.json").read_text())["missing"]["lost_streams"] == 1
    assert "Incomplete data" in (tmp_path / "reports/latest.html").read_text()


def test_what_cannot_be_seen_once_is_not_read_again(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    """Check a document that is damaged and later repaired; and a key of another type, which stops no other stream."""
    now, keys = store.now_ms(), RegistryKeys()
    store.letter("a", now), store.letter("b", now)
    run(spark, settings(store.server, tmp_path, "r1"))
    (document,) = store.server.call("HMGET", keys.queues, "a")
    store.server.call("SET", store.queue("c"), "no stream")
    for number, spoilt in enumerate((b"[]", b"\xff")):
        store.server.call("HSET", keys.queues, "a", spoilt)
        store.letter("b", now)
        assert run(spark, settings(store.server, tmp_path, f"s{number}"))["dead"]["read"] == 1
    store.server.call("HSET", keys.queues, "a", document)
    assert run(spark, settings(store.server, tmp_path, "r3"))["dead"]["read"] == 0
    letter_at(store, now + LATER_MS, now)
    assert run(spark, settings(store.server, tmp_path, "r4"))["dead"]["read"] == 1
