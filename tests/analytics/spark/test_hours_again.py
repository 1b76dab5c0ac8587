"""Hours that are computed more than once: what stays is what one run over the same data would have written."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.analytics.run import run
from services.analytics.tables import CHANGES, REDRIVES, TRAFFIC
from services.store.catalogue.reading import Reading
from tests.analytics.spark.entries import COUNTERS, HOUR_MS, Entries
from tests.analytics.spark.test_aggregates import table
from tests.analytics.spark.test_archive import settings
from tests.analytics.spark.test_kills import octets

MINUTE_MS = 60_000
HISTORY = 26  # hours before the one that is looked at


def work(store: Entries, at: int, n: int, number: int) -> None:
    told = {"edge": "tmq", "process": "p", "n": n, "ms": MINUTE_MS, "queue": "a", "refused": ""}
    counts = dict.fromkeys(("in_octets", "out", "out_octets", "acked", "returned", "rejected"), 0)
    zeros = dict.fromkeys(("put", "wait"), ",".join("0" * 16))
    store.sample("queue", at, **told, **counts, **zeros, **{"in": number})


def steady(store: Entries, chance: random.Random, begin: int, minutes: range) -> None:
    for minute in minutes:
        work(store, begin + minute * MINUTE_MS + 1, minute, 1000 + chance.randrange(20))


@pytest.mark.parametrize("minute", [7, 70])
def test_two_runs_over_one_hour_tell_what_one_does(
    spark: SparkSession,
    store: Entries,
    tmp_path: Path,
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    minute: int,
) -> None:
    """The first when seven minutes of it are there: it had not ended, or what was missing came late."""
    hour = store.now_ms() // HOUR_MS * HOUR_MS - 2 * HOUR_MS
    begin = hour - HISTORY * HOUR_MS
    steady(store, chance, begin, range(0, HISTORY * 60, 5))
    steady(store, chance, hour, range(0, 7, 5))
    with monkeypatch.context() as patched:
        patched.setattr(Reading, "now_ms", lambda _: hour + minute * MINUTE_MS)
        run(spark, replace(settings(store.server, tmp_path / "two", "r1"), accept_clock=True))
    verdicts = [row["verdict"] for row in table(tmp_path / "two", CHANGES).values()]
    assert verdicts == ([] if minute < 60 else ["down"])
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
        patched.setattr(Reading, "now_ms", lambda _: hour + 7 * MINUTE_MS)
        run(spark, replace(settings(store.server, tmp_path, "r1"), accept_clock=True))
    done = run(spark, settings(store.server, tmp_path, "r2"))
    assert len(done["hours"]) == 1
    assert [row["verdict"] for row in table(tmp_path, CHANGES).values()] == ["down"]
    assert run(spark, settings(store.server, tmp_path, "r3"))["hours"] == []


def test_a_late_hour_is_history_to_those_behind_it(
    spark: SparkSession, store: Entries, tmp_path: Path, chance: random.Random
) -> None:
    """A sudden hour is no news once it is known what the hours before it were like."""
    hour = store.now_ms() // HOUR_MS * HOUR_MS - 2 * HOUR_MS
    late = [hour - at * HOUR_MS for at in range(3, 20)]
    begin = hour - 2 * HISTORY * HOUR_MS
    early = [begin + at * HOUR_MS for at in range(30)]
    for number, at in enumerate(early):
        store.letter("a", at, body="x")
        work(store, at + 1, number, 100 + chance.randrange(3))
    work(store, hour + 1, 99, 5000)
    run(spark, settings(store.server, tmp_path / "two", "r1"))
    assert [key[-1] for key in table(tmp_path / "two", CHANGES)] == ["in"]
    for at in late:
        for number in range(30):
            store.letter("a", at, error=f"e{number}")
    run(spark, settings(store.server, tmp_path / "two", "r2"))
    run(spark, settings(store.server, tmp_path / "one", "r2"))
    assert octets(tmp_path / "one/aggregates") == octets(tmp_path / "two/aggregates")


def test_a_table_without_rows_is_removed(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    """Whichever it is: here one that an hour would have had by an older program."""
    now = store.now_ms()
    depth = {"len": 1, "leased": 0, "oldest_ms": 0, "dead": 0, **dict.fromkeys(COUNTERS, 0)}
    store.sample("depth", now - 2 * HOUR_MS, queue="a", qid=1, **depth)
    run(spark, settings(store.server, tmp_path, "r1"))
    (made,) = (tmp_path / "aggregates/depths").rglob("*.parquet")
    wrong = [Path(str(made).replace("depths", of.name)) for of in (TRAFFIC, REDRIVES)]
    for path in wrong:
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
    store.letter("a", now - 2 * HOUR_MS)
    run(spark, settings(store.server, tmp_path, "r2"))
    assert [path.exists() for path in (made, *wrong)] == [True, False, False]
