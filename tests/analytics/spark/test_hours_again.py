"""Test hours that are computed repeatedly: the result is that of one run over the same data."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.analytics.run import run
from services.analytics.tables import CHANGES
from services.store.catalogue.reading import StreamReader
from tests.analytics.spark.test_aggregates import table
from tests.analytics.spark.test_archive import settings
from tests.analytics.spark.test_kills import octets
from tests.redis_stream.entries import HOUR_MS, Entries

MINUTE_MS = 60_000
HISTORY = 26  # hours before the tested one


def work(store: Entries, at: int, n: int, number: int) -> None:
    told = {"edge": "tmq", "process": "p", "n": n, "ms": MINUTE_MS, "queue": "a", "refused": ""}
    counts = dict.fromkeys(("in_octets", "out", "out_octets", "acked", "returned", "rejected"), 0)
    zeros = dict.fromkeys(("put", "wait"), ",".join("0" * 16))
    store.sample("queue", at, **told, **counts, **zeros, **{"in": number})


def steady(store: Entries, chance: random.Random, begin: int, minutes: range) -> None:
    for minute in minutes:
        work(store, begin + minute * MINUTE_MS + 1, minute, 1000 + chance.randrange(20))


def test_two_runs_over_one_hour_tell_what_one_does(
    spark: SparkSession,
    store: Entries,
    tmp_path: Path,
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Check a first run that sees seven minutes of an hour; the rest is added late."""
    hour = store.now_ms() // HOUR_MS * HOUR_MS - 2 * HOUR_MS
    begin = hour - HISTORY * HOUR_MS
    steady(store, chance, begin, range(0, HISTORY * 60, 5))
    steady(store, chance, hour, range(0, 7, 5))
    with monkeypatch.context() as patched:
        patched.setattr(StreamReader, "now_ms", lambda _: hour + 70 * MINUTE_MS)
        run(spark, replace(settings(store.server, tmp_path / "two", "r1"), accept_clock=True))
    assert [row["verdict"] for row in table(tmp_path / "two", CHANGES).values()] == ["down"]
    steady(store, chance, hour, range(10, 60, 5))
    run(spark, settings(store.server, tmp_path / "two", "r2"))
    run(spark, settings(store.server, tmp_path / "one", "r2"))
    assert octets(tmp_path / "one/aggregates") == octets(tmp_path / "two/aggregates") != {}
    assert table(tmp_path / "two", CHANGES) == {}
    assert json.loads((tmp_path / "two/reports/latest.json").read_text())["changes"]["count"] == 0


def test_an_hour_that_ended_since_is_judged_though_nothing_came_for_it(
    spark: SparkSession,
    store: Entries,
    tmp_path: Path,
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hour = store.now_ms() // HOUR_MS * HOUR_MS - 2 * HOUR_MS
    steady(store, chance, hour - HISTORY * HOUR_MS, range(0, HISTORY * 60, 5))
    steady(store, chance, hour, range(0, 7, 5))
    with monkeypatch.context() as patched:
        patched.setattr(StreamReader, "now_ms", lambda _: hour + 7 * MINUTE_MS)
        run(spark, replace(settings(store.server, tmp_path, "r1"), accept_clock=True))
    done = run(spark, settings(store.server, tmp_path, "r2"))
    assert len(done["hours"]) == 1
    assert [row["verdict"] for row in table(tmp_path, CHANGES).values()] == ["down"]
    assert run(spark, settings(store.server, tmp_path, "r3"))["hours"] == []


def test_a_late_hour_is_history_to_those_behind_it(
    spark: SparkSession, store: Entries, tmp_path: Path, chance: random.Random
) -> None:
    """Check that a sudden change disappears when late records change its history."""
    hour = store.now_ms() // HOUR_MS * HOUR_MS - 2 * HOUR_MS
    late = [hour - at * HOUR_MS for at in (3, 4, 9)]
    begin = hour - 2 * HISTORY * HOUR_MS
    for number in range(24):
        work(store, begin + number * HOUR_MS + 1, number, 100 + chance.randrange(3))
    work(store, hour + 1, 99, 5000)
    run(spark, settings(store.server, tmp_path / "two", "r1"))
    assert [key[-1] for key in table(tmp_path / "two", CHANGES)] == ["in"]
    for at in late:
        for number in range(5):
            store.letter("a", at, error=f"e{number}")
    run(spark, settings(store.server, tmp_path / "two", "r2"))
    run(spark, settings(store.server, tmp_path / "one", "r2"))
    assert octets(tmp_path / "one/aggregates") == octets(tmp_path / "two/aggregates")
