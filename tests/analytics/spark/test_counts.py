"""Test impossible counts: they are quarantined, sums of the others are exact, and runs continue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from services.analytics.run import run
from services.analytics.tables import DEPTHS, TRAFFIC
from tests.analytics.spark.test_aggregates import table
from tests.analytics.spark.test_archive import rows, settings
from tests.redis_stream.entries import COUNTERS, Entries

ZEROS = ",".join("0" * 16)
LARGE = ((1 << 40) + 1, (1 << 53) + 2, (1 << 63) - 1)
KNOWN = {
    "edge": "tmq",
    "process": "p",
    "ms": 10_000,
    "queue": "a",
    "refused": "",
    "put": ZEROS,
    "wait": ZEROS,
}
SUMS = ("in", "in_octets", "out", "out_octets", "acked", "returned", "rejected")


def work(store: Entries, at: int, n: int, **told: Any) -> None:
    store.sample("queue", at, **{**KNOWN, "n": n, **dict.fromkeys(SUMS, 5), **told})


def total(output: Path, name: str) -> int:
    return sum(row[name] for row in table(output, TRAFFIC).values())


def test_one_large_count_stops_nothing(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    begin = store.now_ms() - 90_000
    wrong: list[dict[str, Any]] = [{name: large} for name in ("in", "out_octets") for large in LARGE]
    wrong += [{"refused": f"a={large},b=5"} for large in LARGE]
    wrong += [{name: f"{large}{ZEROS[1:]}"} for name in ("put", "wait") for large in LARGE]
    for n, told in enumerate(wrong, 1):
        work(store, begin + 1000 * n, n, **told)
    figures = {"len": 1, "leased": 1, "oldest_ms": 1, "dead": 1, **dict.fromkeys(COUNTERS, 7)}
    for large in ((1 << 53) + 1, 0, (1 << 63) - 1, 0):
        store.sample("depth", begin + 30_000, queue="a", qid=1, **{**figures, "added": large or 7})
    work(store, begin + 40_000, 98, put=f"{1 << 40}{ZEROS[1:]}", **{"in": 1 << 40})
    work(store, begin + 50_000, 99)
    done = run(spark, settings(store.server, tmp_path, "r1"))
    assert done["samples"]["quarantined"] == len(wrong) + 2
    assert len(rows(tmp_path / "quarantine")) == len(wrong) + 2
    assert (total(tmp_path, "in"), total(tmp_path, "out_octets")) == ((1 << 40) + 5, 10)
    assert sum(row["put"][0] for row in table(tmp_path, TRAFFIC).values()) == 1 << 40
    assert [row["added"] for row in table(tmp_path, DEPTHS).values()] == [0]
    work(store, begin + 60_000, 100)
    run(spark, settings(store.server, tmp_path, "r2"))
    assert total(tmp_path, "in") == (1 << 40) + 10
