"""Test the benchmark of the analytics job: the data that it writes to the store, and its results."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from benchmarks.analytics import __main__ as command
from benchmarks.analytics import asking, beside
from benchmarks.analytics.filling import Day
from benchmarks.analytics.job import yield_to_all
from benchmarks.analytics.letters import EDGES, KINDS, ORIGINS, REASONS, UNIQUE, drawn, letters
from benchmarks.analytics.samples import samples
from benchmarks.kept import Kept, result_name
from benchmarks.machine import describe
from services.analytics.cleaning.fingerprint import fingerprints, patterns

DAY = Day(12_000, 900, 1_795_000_000_000)
KEYS = [(f"orders.{number}", f"key{number}") for number in range(8)]
TINY = beside.Looks(1, 0.2, beside.CONDITIONS[1:2])  # the idle class is left out: there the job may never run


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

    assert name() == name("--rounds", "3") == "analytics"
    assert name("--records", "5000") == "analytics-5000"
    assert name("--hours", "1", "--only", "job") == "analytics-1h-job"
    assert name("--only", "read", "--only", "edge") == "analytics-edge-read"


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

    monkeypatch.setattr(command, "fill", lambda *_: {"letters": 0})
    parts = {"read": ("reading", broken), "job": ("job", lambda _: {"runs": 1})}
    monkeypatch.setattr(command, "parts", lambda _: parts)
    with open(os.devnull, "w") as nowhere:
        found = command.run(command.parse(["--results", str(tmp_path)]), Console(file=nowhere), TINY)
    assert (found["failed"], found["job"]) == ({"reading": "the disk is gone"}, {"runs": 1})


def test_an_idle_session_has_the_least_share() -> None:
    """Check that the autogroup's priority is lowered too: the idle class applies only within a session's group.

    A kernel without autogroups needs no change, and the call succeeds.
    """
    group = Path("/proc/self/autogroup")
    if not group.exists():
        yield_to_all(os.getpid())
        return
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield_to_all(process.pid)
        said = Path(f"/proc/{process.pid}/autogroup").read_text()
        process.kill()
    assert said.split()[1:] == ["nice", "19"]
    assert group.read_text() != said


def sizes(**seconds: list[float]) -> list[dict[str, Any]]:
    """Return the seconds by program for 100, 200... letters."""
    names = {"job": "the job", "sql": "Spark SQL", "duck": "DuckDB", "pandas": "pandas"}
    return [
        {"letters": 100 * (at + 1), "seconds": {names[who]: [each[at]] for who, each in seconds.items()}}
        for at in range(len(seconds["job"]))
    ]


def test_crossing_size_is_reported() -> None:
    said = asking.crossing(sizes(job=[9, 3, 3], sql=[5, 5, 5], duck=[1, 4, 6], pandas=[2, 6, 9]))
    assert said == "Spark wins from 200 letters on: the job took 3.00 s and DuckDB 4.00 s."


def test_missing_crossing_is_reported() -> None:
    said = asking.crossing(sizes(job=[9, 3, 8], sql=[5, 5, 5], duck=[1, 4, 2], pandas=[2, 6, 9]))
    assert said == (
        "Spark is never fastest up to 300 letters on this machine; there Spark SQL took 5.00 s and DuckDB 2.00 s."
    )
