"""Interrupt the job, then kill it at a random moment: the next run finishes it."""

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
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from services.analytics.files import Files
from services.analytics.report.output import give
from services.analytics.run import run
from services.analytics.settings import Settings
from services.store.model.keys import RegistryKeys
from tests.docs.blocks import blocks
from tests.redis_stream.entries import Entries, fill_letters, fill_samples
from tests.redis_stream.spark.jvm import SHORT_LIVED

PAGE = "docs/analytics.md"
USUAL_STORE, USUAL_OUTPUT = "redis://127.0.0.1:6379", "/var/lib/penstock/analytics"
PATIENCE_S = 900.0


def command(store: Entries, output: Path, *more: str) -> list[str]:
    """Return the command of docs/analytics.md, with less memory."""
    (job,) = [each for each in blocks(PAGE) if each.section == "The job" and each.is_command]
    line = job.text.replace(USUAL_STORE, store.server.url).replace(USUAL_OUTPUT, str(output))
    python, *words = shlex.split(line)
    assert (python, {store.server.url, str(output)} <= set(words)) == ("python", True)
    return [sys.executable, "-P", *words, "--run-id", "r1", "--driver-memory", "512m", *more]


def environment() -> dict[str, str]:
    own = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    return {**os.environ, **SHORT_LIVED, **own}


def begin(store: Entries, output: Path, *more: str) -> subprocess.Popen[bytes]:
    with (output.parent / "log").open("ab") as log:
        return subprocess.Popen(
            command(store, output, *more), env=environment(), stdout=log, stderr=log, start_new_session=True
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def carry_out(spark: SparkSession, store: Entries, output: Path) -> None:
    """Do what the process of the job does, in this process: run r1 and send its report to the store."""
    settings = Settings(store.server.url, str(output), "r1")
    run(spark, settings)
    give(Files(settings.output), settings)


# How far a run is when it is interrupted, by files written so far.
MOMENTS = {
    "it has the lock": "runs/lock.json",
    "it has a plan": "runs/r1/plan.json",
    "it writes the archive": "runs/r1/staging/archive/*/*",
    "it computes tables": "runs/r1/staging/aggregates/*",
    "it is ready": "runs/r1/ready.json",
    "it moves": "archive/dead/day=*",
}


def wait_until(moment: str, output: Path, process: subprocess.Popen[bytes], begun: float = 0.0) -> None:
    """Return when a file of the moment is newer than `begun`, or the process has ended."""
    while process.poll() is None and not any(map(is_newer(begun), output.glob(MOMENTS[moment]))):
        time.sleep(0.005)


def is_newer(begun: float) -> Callable[[Path], bool]:
    def check(path: Path) -> bool:
        try:
            return path.stat().st_mtime > begun
        except FileNotFoundError:
            return False

    return check


def logged(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def rows(folder: Path) -> list[tuple[str, str]]:
    found = [pq.ParquetFile(path).read(["stream", "id"]) for path in folder.rglob("*.parquet")]
    return sorted((row["stream"], row["id"]) for table in found for row in table.to_pylist())


def octets(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def check_same(one: Path, other: Path) -> None:
    """Check that two outputs have the same tables, and the same records in their archives."""
    assert octets(one / "aggregates") == octets(other / "aggregates") != {}
    for kind in ("dead", "samples"):
        assert rows(one / "archive" / kind) == rows(other / "archive" / kind) != []


@pytest.mark.timeout(2 * PATIENCE_S)
def test_interrupted_run_ends_as_an_undisturbed_one(
    spark: SparkSession, store: Entries, tmp_path: Path, chance: random.Random
) -> None:
    fill_letters(store, chance, 60, 2)
    fill_samples(store, chance, 8, 2)
    whole, output, log = tmp_path / "whole", tmp_path / "out", tmp_path / "log"
    carry_out(spark, store, whole)

    process = begin(store, output)
    wait_until("it has a plan", output, process)
    number = chance.choice((signal.SIGTERM, signal.SIGINT))
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == 128 + number, log.read_text()[-3000:]
    told = logged(log)
    assert [each["master"] for each in told if each["action"] == "started"] == ["local[*]"]
    assert "terminated" in [each["action"] for each in told]
    assert not (output / "runs/lock.json").exists()
    assert not (output / "state.json").exists()

    begun = time.time()
    process = begin(store, output)
    moment = chance.choice([name for name in MOMENTS if name != "it has a plan"])  # it exists already
    wait_until(moment, output, process, begun)
    time.sleep(chance.choice((0.0, 0.0, chance.random())))
    print(f"killed when {moment}: {'still at work' if process.poll() is None else 'it was through'}")
    kill(process)

    carry_out(spark, store, output)
    check_same(whole, output)
    one, other = (json.loads((folder / "state.json").read_text()) for folder in (whole, output))
    for state in (one, other):
        del state["now_ms"], state["unfinished"]  # the runs were planned at different times
    assert one == other
    assert sorted(path.name for path in (output / "runs/r1").iterdir()) == ["done.json", "plan.json"]
    latest = (output / "reports/latest.json").read_bytes()
    assert latest == (output / "reports/r1.json").read_bytes()
    assert store.server.call("GET", RegistryKeys().report).partition(b" ")[2] == latest
