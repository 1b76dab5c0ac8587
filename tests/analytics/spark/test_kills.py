"""The job killed at random moments, and begun again until it is through: as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from services.store.model.keys import RegistryKeys
from tests.analytics.spark.entries import Entries, fill_letters, fill_samples
from tests.docs.blocks import blocks

PAGE = "docs/analytics.md"
USUAL_STORE, USUAL_OUTPUT = "redis://127.0.0.1:6379", "/var/lib/penstock/analytics"
PATIENCE_S = 900.0
KILLS = 3  # in one test: each costs a start of Spark


def command(store: Entries, output: Path, *more: str) -> list[str]:
    """That of the page, with less memory."""
    (job,) = [each for each in blocks(PAGE) if each.section == "The job" and each.is_command]
    line = job.text.replace(USUAL_STORE, store.server.url).replace(USUAL_OUTPUT, str(output))
    python, *words = shlex.split(line)
    assert (python, {store.server.url, str(output)} <= set(words)) == ("python", True)
    own = ("--run-id", "r1", "--master", "local[2]", "--driver-memory", "512m")
    return [sys.executable, "-P", *words, *own, *more]


def environment() -> dict[str, str]:
    return {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}


def begin(store: Entries, output: Path, *more: str) -> subprocess.Popen[bytes]:
    with (output.parent / "log").open("ab") as log:
        return subprocess.Popen(
            command(store, output, *more), env=environment(), stdout=log, stderr=log, start_new_session=True
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def is_there(path: str) -> Callable[[Path], bool]:
    return lambda output: any(output.glob(path))


# what a run has got to when it is killed; and then some time more
MOMENTS = {
    "it has the lock": is_there("runs/lock.json"),
    "it has a plan": is_there("runs/r1/plan.json"),
    "it writes the archive": is_there("runs/r1/staging/archive/*/*"),
    "it computes tables": is_there("runs/r1/staging/aggregates/*"),
    "it is ready": is_there("runs/r1/ready.json"),
    "it moves": is_there("archive/dead/day=*"),
}


def rows(folder: Path) -> list[tuple[str, str]]:
    found = [pq.ParquetFile(path).read(["stream", "id"]) for path in folder.rglob("*.parquet")]
    return sorted((row["stream"], row["id"]) for table in found for row in table.to_pylist())


def octets(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


@pytest.mark.timeout(2 * PATIENCE_S)
def test_killed_at_random_it_ends_as_if_it_had_not_been(
    store: Entries, tmp_path: Path, chance: random.Random
) -> None:
    fill_letters(store, chance, 60, 2)
    fill_samples(store, chance, 8, 2)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir(), killed.mkdir()
    assert begin(store, whole / "out").wait(PATIENCE_S) == 0, (whole / "log").read_text()[-3000:]
    moments = sorted(chance.sample(list(MOMENTS), KILLS), key=list(MOMENTS).index)
    for name in moments:
        has_come = MOMENTS[name]
        process = begin(store, killed / "out")
        while process.poll() is None and not has_come(killed / "out"):
            time.sleep(0.005)
        time.sleep(chance.choice((0.0, 0.0, chance.random())))
        print(f"killed when {name}: {'still at work' if process.poll() is None else 'it was through'}")
        kill(process)
    assert begin(store, killed / "out").wait(PATIENCE_S) == 0, (killed / "log").read_text()[-3000:]
    assert octets(whole / "out/aggregates") == octets(killed / "out/aggregates") != {}
    for kind in ("dead", "samples"):
        assert rows(whole / "out/archive" / kind) == rows(killed / "out/archive" / kind) != []
    one, other = (json.loads((folder / "out/state.json").read_text()) for folder in (whole, killed))
    for state in (one, other):
        del state["now_ms"], state["unfinished"]  # they were planned one after the other
    assert one == other
    assert sorted(path.name for path in (killed / "out/runs/r1").iterdir()) == ["done.json", "plan.json"]
    latest = (killed / "out/reports/latest.json").read_bytes()
    assert latest == (killed / "out/reports/r1.json").read_bytes()
    assert store.server.call("GET", RegistryKeys().report).partition(b" ")[2] == latest
