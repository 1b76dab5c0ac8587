"""Test the benchmark of the analytics job: the data that it writes to the store, and its results."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from benchmarks.analytics import __main__ as command
from benchmarks.analytics import engines, runs, shown
from benchmarks.analytics.bench import Bench, fill
from benchmarks.analytics.filling import Day
from benchmarks.analytics.findings import findings
from benchmarks.analytics.job import Ended
from benchmarks.analytics.letters import EDGES, KINDS, ORIGINS, REASONS, UNIQUE, drawn, letters
from benchmarks.analytics.samples import samples
from benchmarks.kept import Kept, result_name
from benchmarks.machine import describe
from benchmarks.peers.redis import Store
from benchmarks.process import workshop
from services.analytics import delta
from services.analytics.cleaning.fingerprint import fingerprints, patterns
from services.analytics.tables import ALL, BRONZE, SUMS
from services.redis_stream.schema import Kind

DAY = Day(12_000, 900, 1_795_000_000_000)
KEYS = [(f"orders.{number}", f"key{number}") for number in range(8)]


def parsed(command_octets: bytes) -> dict[str, bytes]:
    """Return the fields of an XADD; fail if the length before a word is wrong."""
    number, _, rest = command_octets.removeprefix(b"*").partition(b"\r\n")
    words = []
    while rest:
        length, _, rest = rest.removeprefix(b"$").partition(b"\r\n")
        words.append(rest[: int(length)])
        assert rest[int(length) : int(length) + 2] == b"\r\n"
        rest = rest[int(length) + 2 :]
    assert (words[0], len(words)) == (b"XADD", int(number))
    return {"key": words[1], "id": words[2]} | {
        words[at].decode(): words[at + 1] for at in range(3, len(words), 2)
    }


@pytest.fixture(scope="module")
def dead() -> list[dict[str, bytes]]:
    return [parsed(each) for each in letters(KEYS, DAY)]


def test_bodies_are_as_different_as_they_were_drawn(dead: list[dict[str, bytes]]) -> None:
    """Check that the bodies have as many fingerprints as were drawn: kinds may not differ in digits alone."""
    found = fingerprints(pa.array([each["body"] for each in dead], pa.binary()))
    draws = drawn(DAY.letters)
    assert len(found.unique()) == draws.bodies()
    assert draws.bodies() == len(KINDS) + draws.is_unique.sum()
    assert draws.is_unique.mean() == pytest.approx(UNIQUE, rel=0.1)
    errors = patterns(pa.array([each["error"].decode() for each in dead]))
    assert len(errors.unique()) == len(KINDS)


def test_every_queue_has_all_kinds_reasons_origins_and_edges(dead: list[dict[str, bytes]]) -> None:
    seen: dict[tuple[str, bytes], set[bytes]] = defaultdict(set)
    for each in dead:
        of = {"kind": each["error"][:-7], "edge": each["origin"].split()[0]}
        for name, value in {**of, "reason": each["reason"], "origin": each["origin"]}.items():
            seen[name, each["queue"]].add(value)
    wanted = {"kind": len(KINDS), "edge": len(EDGES), "reason": len(REASONS), "origin": ORIGINS}
    assert {key: len(values) for key, values in seen.items()} == {
        (name, queue.encode()): number for queue, _ in KEYS for name, number in wanted.items()
    }


def test_the_same_day_again_is_the_same(dead: list[dict[str, bytes]]) -> None:
    assert [parsed(each) for each in letters(KEYS, DAY)] == dead


def test_there_are_as_many_samples_as_wanted_and_each_is_whole() -> None:
    found = [parsed(each) for each in samples("key", [name for name, _ in KEYS], DAY)]
    assert len(found) == DAY.samples
    assert {each["kind"] for each in found} == {b"edge", b"queue", b"depth"}


@pytest.fixture(scope="module", autouse=True)
def _a_short_look_at_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "describe", partial(describe, watched_s=0.2))
        yield


def test_a_smaller_run_or_a_part_never_has_the_full_ones_name() -> None:
    def name(*words: str) -> str:
        options = command.parse(words)
        return result_name(command.NAME, command.smaller(options), options.only)

    assert name() == name("--ten-days") == "analytics"
    assert name("--records", "5000") == "analytics-5000"
    assert name("--hours", "1", "--only", "job") == "analytics-1h-job"
    assert name("--only", "reading", "--only", "gold") == "analytics-gold-reading"


def test_ten_days_are_run_only_when_asked_for() -> None:
    def parts(*words: str) -> list[str]:
        return command.wanted(command.parse(words))

    assert parts() == ["reading", "cores", "job", "gold"]
    assert parts("--only", "gold", "--only", "job") == ["job", "gold"]
    assert parts("--only", "ten_days") == ["ten_days"]
    assert parts("--only", "job", "--ten-days") == ["job", "ten_days"]


def test_previous_results_are_kept_until_the_run_finishes(tmp_path: Path) -> None:
    (tmp_path / "analytics.json").write_text("the run before")
    kept = Kept(tmp_path, "analytics")
    kept.save({"fill": {}})
    assert kept.path.read_text() == "the run before"
    assert json.loads((tmp_path / "analytics-unfinished.json").read_text()) == {"fill": {}}
    assert json.loads(kept.finish().read_text()) == {"fill": {}}
    assert [each.name for each in tmp_path.iterdir()] == ["analytics.json"]


def test_a_part_that_fails_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(command, "fill", lambda _: {"letters": 0})
    monkeypatch.setattr(command, "PARTS", {"reading": broken, "job": lambda _: {"runs": 1}})
    with open(os.devnull, "w") as nowhere:
        found = command.run(command.parse(["--results", str(tmp_path)]), Console(file=nowhere))
    assert (found["failed"], found["job"]) == ({"reading": "the disk is gone"}, {"runs": 1})


def test_each_of_ten_runs_finds_one_day_in_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[int] = []

    def seen(bench: Bench, _output: str, _run: str) -> Ended:
        with bench.server.connect() as connection:
            last = [connection.xinfo_stream(key)["last-generated-id"] for key in bench.dead]
            ends.append(max(int(each.split(b"-")[0]) for each in last))
            return Ended(9.0, 5.0, {"all": 900.0}, {}, sum(map(connection.xlen, bench.dead)), 0)

    monkeypatch.setattr(Bench, "run", seen)
    with workshop() as place:
        bench = Bench(place, Store(place), lambda _: None, records=400, hours=24)
        filled = fill(bench)
        assert (filled["letters"], filled["samples"], filled["queues"]) == (400, 400, 200)
        days = runs.measure_days(bench)
    assert [each["dead"] for each in days] == [400] * 10
    assert [later - before for before, later in pairwise(ends)] == [24 * 3_600_000] * 9


def ran(records: int, seconds: float, mib: float = 1000.0) -> dict[str, Any]:
    """Return the figures of a run as they are kept."""
    memory = {"all": mib, "java": mib - 300, "python": 300.0}
    steps = {"gold": seconds - 1}
    of_run = {"seconds": seconds + 5, "spark_s": seconds, "memory_mib": memory, "steps": steps}
    return {**of_run, "dead": records, "samples": records}


FOUND: dict[str, Any] = {
    "reading": {
        "dead": {"loop": 150_000.0, "one core": 200_000.0, "two cores": 300_000.0},
        "samples": {"loop": 90_000.0, "one core": 130_000.0, "two cores": 190_000.0},
    },
    "cores": {"1": ran(5_000_000, 150), "2": ran(5_000_000, 80)},
    "job": {
        "all records": ran(5_000_000, 80),
        "nothing new": {**ran(0, 2), "spark_s": 0.0},
        "2,000 new letters": ran(2000, 30, mib=2100),
    },
    "gold": {"seconds": 21.0, "rows": {"deaths": 9}, "engines": {}},
    "ten_days": [ran(5_000_000, 80, mib=1900 + number) for number in range(10)],
}


def test_missed_goals_are_shown_with_their_numbers() -> None:
    found = {(each.measure, each.what): (round(each.value, 3), each.verdict) for each in findings(FOUND)}
    assert found == {
        ("reading", "dead read by Spark on two cores"): (300_000, "met"),
        ("reading", "samples read by Spark on two cores"): (190_000, "missed"),
        ("cores", "the whole job, two cores / one"): (1.875, "met"),
        ("job", "the whole job on two cores, after Spark's start"): (125_000, "missed"),
        ("job", "the same, least rate"): (125_000, "met"),
        ("job", "its memory at most, all processes"): (2100, "missed"),
        ("gold", "all gold tables of the day"): (21, "missed"),
        ("ten_days", "memory at most in 10 days, a run each"): (1909, "met"),
    }
    machine = {**dict.fromkeys(("processor", "system", "kernel", "python", "filesystem"), "x")}
    numbers = dict.fromkeys(("cores", "memory_gib", "fdatasync_us", "load"), 1)
    head = {"date": "2026-11-29", "is_full": True, "failed": {}, "commit": "", "machine": machine | numbers}
    filled = {"letters": 5, "samples": 5, "queues": 200, "hours": 24, "store_mib": 9}
    text = shown.SHOWN.markdown({**FOUND, **head, "fill": filled})
    job = "the whole job on two cores, after Spark's start"
    assert f"| {job} | 125,000 records/s | >= 145000 | missed |" in text
    assert "| nothing new | 0 | 7.0 | 0.0 | 1,000 | 700 | 300 |" in text


@pytest.fixture
def bronze(tmp_path: Path) -> Path:
    """Return an output with 200 letters and samples of three queues."""
    delta.create(str(tmp_path), ALL)
    died = datetime(2026, 11, 29, 5, tzinfo=UTC)
    of = {
        "day": "2026-11-29",
        "hour": "05",
        "domain": "main",
        "edge": "tmq",
        "reason": "expired",
        "died": died,
    }
    dead, measured = list[dict[str, Any]](), list[dict[str, Any]]()
    for at in range(200):
        each = {**of, "queue": f"q{at % 3}", "kind": "queue", **dict.fromkeys(SUMS, at)}
        each |= {"size": at, "acquired": at % 5, "redriven": at % 2}
        dead.append({**each, "enqueued": died - timedelta(milliseconds=at**2)})
        measured.append(each)
    delta.append(str(tmp_path), BRONZE[Kind.DEAD], dead)
    delta.append(str(tmp_path), BRONZE[Kind.SAMPLES], measured)
    return tmp_path


def test_engines_count_deaths_by_age(bronze: Path) -> None:
    question = engines.QUESTIONS["deaths"]
    found = question.by_duckdb(bronze)
    assert question.by_polars(bronze).equals(found)
    first = found.to_pylist()[0]
    assert (first["queue"], first["hour"], first["count"], first["redriven"]) == ("q0", "05", 67, 33)
    assert first["octets"] == sum(range(0, 200, 3))
    # up to 1, 5, 10, 50, 100 and 500 ms, and 1, 5, 10 and 60 s
    assert first["age"] == [1, 0, 1, 1, 1, 4, 3, 13, 10, 33, *[0] * 6]
    assert first["acquired_mean"] == round(sum(at % 5 for at in range(0, 200, 3)) / 67, 6)


def test_engines_sum_traffic(bronze: Path) -> None:
    question = engines.QUESTIONS["traffic, sums"]
    found = question.by_duckdb(bronze)
    assert question.by_polars(bronze).equals(found)
    assert [row["out_octets"] for row in found.to_pylist()] == [sum(range(at, 200, 3)) for at in range(3)]


def test_answer_that_differs_from_gold_is_an_error(bronze: Path) -> None:
    question = engines.QUESTIONS["traffic, sums"]
    found = question.by_duckdb(bronze)
    engines.check(found, found, "traffic by DuckDB")
    with pytest.raises(OSError, match=r"traffic by DuckDB: .*'q0'.* is not .*'q1'"):
        engines.check(found, found.slice(1), "traffic by DuckDB")
    with pytest.raises(OSError, match="3 rows are not 0"):
        engines.check(found, question.gold(bronze), "traffic by DuckDB")
