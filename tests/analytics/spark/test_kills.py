"""Interrupt the job, then kill it at random moments: the next run finishes it, and the tables are the same.

PENSTOCK_TEST_KILLS is the number of kills, 1 unless it is set.
"""

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
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from services.analytics.failures import CONCURRENT, DONE, told
from services.analytics.tables import ALL, RUNS
from services.store.model.keys import RegistryKeys
from tests.analytics.spark.carried_out import carry_out, rows
from tests.analytics.spark.conftest import LETTERS, PASSWORD, Done, with_password
from tests.docs.blocks import blocks
from tests.redis_stream.entries import Entries
from tests.redis_stream.spark.jvm import SHORT_LIVED

PAGE = "docs/analytics.md"
USUAL_STORE, USUAL_OUTPUT = "redis://127.0.0.1:6379", "/var/lib/penstock/analytics"
PATIENCE_S = 900.0
KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", "1"))


def command(store: Entries, output: Path, *more: str) -> list[str]:
    """Return the command of docs/analytics.md, with less memory."""
    (job,) = [each for each in blocks(PAGE) if each.section == "The job" and each.is_command]
    line = job.text.replace(USUAL_STORE, store.server.url).replace(USUAL_OUTPUT, str(output))
    penstock, *words = shlex.split(line)
    assert (penstock, {store.server.url, str(output)} <= set(words)) == ("penstock", True)
    return [sys.executable, "-P", "-m", "services.cli", *words, "--driver-memory", "600m", *more]


def environment() -> dict[str, str]:
    own = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    return {**os.environ, **SHORT_LIVED, **own}


def begin(store: Entries, output: Path, *more: str) -> subprocess.Popen[bytes]:
    with (output.parent / "log").open("ab") as log:
        return subprocess.Popen(
            command(store, output, *more), env=environment(), stdout=log, stderr=log, start_new_session=True
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # it has ended, and all that it has started
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# How far a run is, by files written so far.
MOMENTS = {
    "it creates tables": "bronze/dead/_delta_log/*0.json",
    "it has planned a batch": "_checkpoints/abc/dead/offsets/*",
    "it has read dead letters": "bronze/dead/_delta_log/*[1-9].json",
    "it reads samples": "_checkpoints/abc/samples/offsets/*",
    "it computes hours": "_checkpoints/abc/samples/commits/*",
    "it has computed a table": "gold/deaths/_delta_log/*[1-9].json",
    "it has computed the last table": "gold/redrives/_delta_log/*[1-9].json",
    "it writes the report": "reports/*",
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
    """Return the lines of the job that are complete."""
    lines = log.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


def check_same(one: Path, other: Path) -> None:
    """Check that two outputs have the same rows in all tables, and none twice."""
    for table in ALL:
        if table is not RUNS:
            place = "/".join((*table.folder, table.name))
            assert sorted(map(repr, rows(one, place))) == sorted(map(repr, rows(other, place))), place
    for kind in ("dead", "samples"):
        ids = [(row["stream"], row["id"]) for row in rows(one, f"bronze/{kind}")]
        assert len(ids) == len(set(ids)) > 0


@pytest.mark.timeout((2 + KILLS) * PATIENCE_S)
def test_killed_runs_leave_the_tables_of_an_undisturbed_one(
    spark: SparkSession, done: Done, tmp_path: Path, chance: random.Random
) -> None:
    store, outputs, left = done.store, [tmp_path / "out"], KILLS
    for number in count():
        begun = time.time()
        process = begin(store, outputs[-1], "--run-id", f"k{number}")
        moment = chance.choice(list(MOMENTS))
        wait_until(moment, outputs[-1], process, begun)
        time.sleep(chance.choice((0.0, 0.0, chance.random())))
        is_through = process.poll() is not None
        print(f"killed when {moment}: {'it was through' if is_through else 'still at work'}")
        kill(process)
        left -= not is_through
        if not left:
            break
        if is_through:  # nothing is left to do there
            outputs.append(tmp_path / f"out{number}")
    for output in outputs:
        carry_out(spark, store, output, "last")
        check_same(done.output, output)
        assert sum(row["dead"] for row in rows(output, "runs")) == LETTERS
        latest = (output / "reports/latest.json").read_bytes()
        assert latest == (output / "reports/last.json").read_bytes()
    assert store.server.call("GET", RegistryKeys().report).partition(b" ")[2] == latest


@pytest.mark.timeout(2 * PATIENCE_S)
def test_of_two_runs_at_once_one_is_done_and_the_other_says_why_not(
    spark: SparkSession, done: Done, tmp_path: Path
) -> None:
    output, events, codes = tmp_path / "out", tmp_path / "events", []
    conf = {"enabled": "true", "dir": str(events), "compress": "false"}
    log = [word for name, value in conf.items() for word in ("--conf", f"spark.eventLog.{name}={value}")]
    process = begin(done.store, output, "--run-id", "r1", "--store", with_password(done.store), *log)
    wait_until("it has planned a batch", output, process)
    try:
        carry_out(spark, done.store, output, "r2")
    except PySparkException as error:
        code, text = told(error)
        assert "at the same time" in text
        codes.append(code)
    codes.append(process.wait(PATIENCE_S))
    assert {*codes} <= {DONE, CONCURRENT}, (tmp_path / "log").read_text()[-3000:]
    assert codes != [CONCURRENT, CONCURRENT]
    carry_out(spark, done.store, output, "last")
    check_same(done.output, output)
    written = b"".join(path.read_bytes() for path in events.rglob("*") if path.is_file())
    assert b"ingest dead" in written
    assert PASSWORD.encode() not in written + (tmp_path / "log").read_bytes()


@pytest.mark.timeout(2 * PATIENCE_S)
def test_interrupted_run_says_so_and_the_next_one_continues(
    spark: SparkSession, done: Done, tmp_path: Path, chance: random.Random
) -> None:
    output, log = tmp_path / "out", tmp_path / "log"
    process = begin(done.store, output, "--run-id", "r1")
    wait_until("it has planned a batch", output, process)
    number = chance.choice((signal.SIGTERM, signal.SIGINT))
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == 128 + number, log.read_text()[-3000:]
    told = logged(log)
    assert [each["master"] for each in told if each["action"] == "started"] == ["local[*]"]
    assert "terminated" in [each["action"] for each in told]
    assert carry_out(spark, done.store, output)["dead"] == LETTERS
    check_same(done.output, output)
