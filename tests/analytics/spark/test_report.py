"""Compare reports of real runs with plain Python over the same entries; published, and sent to the store."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from services.analytics.files import Files
from services.analytics.places import OutputError
from services.analytics.run import run
from tests.analytics.spark.test_aggregates import seed

from services.analytics.report.output import ReportRefused, give
from services.analytics.settings import Settings, SettingsError, Shape
from services.store.model.keys import RegistryKeys
from services.store.redis.rights import analytics_rules
from tests.analytics.spark import expected
from tests.redis_stream.entries import HOUR_MS, Entries, fill_letters, fill_samples
from tests.servers import PROGRAMS, Server

KEY = RegistryKeys().report
HOURS = 3


def settings(store: Entries, output: Path, name: str = "r1", **told: Any) -> Settings:
    return Settings(store.server.url, str(output), name, Shape(**told), lock_s=5, patience_s=0.5)


def published(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((output / "reports").iterdir())}


def in_store(store: Entries) -> Any:
    found = store.server.call("GET", KEY)
    return None if found is None else json.loads(found.partition(b" ")[2])


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Entries, Path]]:
    """A run over some hours, all of which the report covers."""
    folder, chance = tmp_path_factory.mktemp("report"), random.Random(seed())
    server = Server(next(iter(PROGRAMS)), folder / "store").start()
    store = Entries(server)
    fill_letters(store, chance, 150, HOURS, queues=("a", "b", "<script>"))
    fill_samples(store, chance, 12 * HOURS, HOURS)
    run(spark, settings(store, folder / "out"))
    yield store, folder / "out"
    server.end()


def test_its_figures_are_those_that_plain_python_finds(done: tuple[Entries, Path]) -> None:
    store, output = done
    told = json.loads(published(output)["latest.json"])
    traffic, depths = expected.traffic(store.samples), expected.depths(store.samples)
    for name in ("in", "in_octets", "out", "out_octets", "acked", "returned"):
        assert told["totals"][name] == sum(row[name] for row in traffic.values())
    refused = sum(row["refused_puts"] for row in traffic.values())
    asked = refused + told["totals"]["in"]
    assert told["totals"]["refused"] == sum(row["refused_all"] for row in traffic.values()) > refused
    assert (told["budget"]["refused"], told["budget"]["asked"]) == (refused, asked)
    assert told["budget"]["used"] == pytest.approx(refused / asked / 0.001)
    assert told["totals"]["dead"] == len(store.letters)
    assert told["totals"]["died"] == sum(row["dead_all"] for row in depths.values())
    for key, shown in (("reason", "by_reason"), ("origin", "by_origin")):
        counted = Counter(letter[key] for letter in store.letters)
        assert {each["name"]: each["count"] for each in told["deaths"][shown]} == counted
    queues = Counter(letter["queue"] for letter in store.letters)
    assert {each["queue"]: each["dead"] for each in told["queues"] if each["dead"]} == queues
    for name, bounds in (("put", expected.PUT), ("wait", expected.WAIT)):
        counts = [sum(column) for column in zip(*(row[name] for row in traffic.values()), strict=True)]
        assert told[name]["counts"] == counts
        assert told[name]["p99"] == pytest.approx(expected.quantile(counts, bounds, 0.99))
    alike = Counter(
        (d["queue"], d["reason"], expected.plain(d["error"])[:200], expected.fingerprint(d["body"]))
        for d in store.letters
    )
    first = told["failures"][0]
    assert first["count"] == max(alike.values())
    assert alike[first["queue"], first["reason"], first["pattern"], first["fingerprint"]] == first["count"]
    again = sum(letter.get("redriven", 0) for letter in store.letters)
    assert told["redrives"]["died_again"] == again
    assert told["records"]["dead"] == {"read": 150, "archived": 150, "quarantined": 0, "gone": 0}


def test_it_is_published_under_its_name_and_as_the_newest(done: tuple[Entries, Path]) -> None:
    found = published(done[1])
    assert sorted(found) == ["latest.html", "latest.json", "r1.html", "r1.json"]
    assert found["latest.html"] == found["r1.html"]
    assert found["latest.json"] == found["r1.json"]
    assert b"&lt;script&gt;" in found["r1.html"]
    assert b"<script>" not in found["r1.html"]


def test_the_same_plan_gives_the_same_octets(
    spark: SparkSession, done: tuple[Entries, Path], tmp_path: Path
) -> None:
    store, output = done
    (tmp_path / "runs/r1").mkdir(parents=True)
    shutil.copy(output / "runs/r1/plan.json", tmp_path / "runs/r1/plan.json")
    run(spark, settings(store, tmp_path))
    assert published(tmp_path) == published(output)


def test_each_run_replaces_the_newest_and_old_ones_go(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    now = store.now_ms()
    store.letter("a", now - 30 * HOUR_MS)
    run(spark, settings(store, tmp_path, "r1"))
    assert json.loads(published(tmp_path)["latest.json"])["totals"]["dead"] == 1
    store.letter("a", now)
    run(spark, settings(store, tmp_path, "r2", report_hours=2))
    told = json.loads(published(tmp_path)["latest.json"])
    assert (told["run"], told["totals"]["dead"], told["period"]["hours"]) == ("r2", 1, 2)
    assert json.loads(published(tmp_path)["r1.json"])["run"] == "r1"
    done_file = tmp_path / "runs/r1/done.json"
    done_file.write_text(json.dumps({**json.loads(done_file.read_text()), "now_ms": now - 25 * HOUR_MS}))
    (tmp_path / "runs/begun.json").unlink()  # as in an output of an older version
    store.letter("a", now)  # of a published hour, which is computed again
    run(spark, settings(store, tmp_path, "r3", retention_days=1, report_hours=100))
    assert sorted(published(tmp_path)) == [
        f"{name}.{kind}" for name in ("latest", "r2", "r3") for kind in ("html", "json")
    ]
    told = json.loads(published(tmp_path)["latest.json"])
    assert told["totals"]["dead"] == 2  # the hour of the first will be removed


def test_the_store_gets_it_and_keeps_a_newer_one(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    store.letter("a", store.now_ms())
    for name in ("r1", "r2"):
        run(spark, settings(store, tmp_path / name, name))
        give(Files(str(tmp_path / name)), settings(store, tmp_path / name))
    assert in_store(store) == json.loads(published(tmp_path / "r2")["r2.json"])
    give(Files(str(tmp_path / "r1")), settings(store, tmp_path / "r1"))  # of another output, older
    assert in_store(store)["run"] == "r2"


def test_a_store_that_does_not_take_it_gets_it_the_next_time(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    store.letter("a", store.now_ms())
    files, how = Files(str(tmp_path)), settings(store, tmp_path)
    run(spark, how)
    for wrong in (
        lambda: store.server.configured(maxmemory="1"),
        lambda: store.server.configured(**{"min-replicas-to-write": "3"}),
    ):
        with wrong(), pytest.raises(ReportRefused, match=r"output is complete.*next run sends it again"):
            give(files, how)
    with pytest.raises(ReportRefused, match="complete"):
        give(files, replace(how, store="redis://127.0.0.1:1"))
    assert in_store(store) is None
    assert (tmp_path / "runs/r1/done.json").exists()
    give(files, how)
    assert in_store(store)["run"] == "r1"


def test_a_report_that_somebody_spoilt_is_told(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    give(
        Files(str(tmp_path)), settings(store, tmp_path)
    )  # without a report, as in an output of an older version
    (tmp_path / "reports").mkdir()
    for text in ("", "[]", "{}", '{"run": "r1", "now_ms": "soon"}'):
        (tmp_path / "reports/latest.json").write_text(text)
        with pytest.raises(OutputError, match="is not a report"):
            give(Files(str(tmp_path)), settings(store, tmp_path))


def test_the_jobs_own_user_may_do_all_of_it(
    spark: SparkSession, store: Entries, tmp_path: Path, chance: random.Random
) -> None:
    """Check the rights of `penstock store rights --for analytics`."""
    fill_letters(store, chance, 20, 1)
    fill_samples(store, chance, 3, 1)
    store.server.call("ACL", "SETUSER", "analytics", *analytics_rules(), ">secret")
    try:
        how = replace(
            settings(store, tmp_path), store=f"redis://analytics:secret@127.0.0.1:{store.server.port}"
        )
        run(spark, how)
        give(Files(str(tmp_path)), how)
    finally:
        store.server.call("ACL", "DELUSER", "analytics")
    assert in_store(store)["totals"]["dead"] == 20


@pytest.mark.parametrize("url", ["", "nonsense", "http://h", "redis://"])
def test_a_store_that_is_none_is_a_matter_of_settings(url: str) -> None:
    with pytest.raises(SettingsError, match="store: "):
        Settings(url, "/o", "r1")


def test_no_run_has_the_name_of_the_newest_report() -> None:
    with pytest.raises(SettingsError, match="latest"):
        Settings("redis://h", "/o", "latest")
