"""Test runs that are stopped: while Spark starts, and repeated ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.analytics.spark.carried_out import rows
from tests.analytics.spark.test_kills import PATIENCE_S, begin, kill, logged
from tests.redis_stream.entries import Entries


def has_begun_java(pid: int) -> bool:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return any(b"spark-submit" in Path(f"/proc/{child}/cmdline").read_bytes() for child in children)


def eventually_gone(group: int) -> None:
    """Raise ProcessLookupError once no process of the group is left."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        os.killpg(group, 0)
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)


def wait_for_letters(log: Path, number: int, process: subprocess.Popen[bytes]) -> None:
    """Return when the runs that ended have read this many dead letters, or the process has ended."""

    def read() -> int:
        ended = [json.loads(each["summary"]) for each in logged(log) if each.get("action") == "done"]
        return sum(summary["dead"] for summary in ended)

    while process.poll() is None and read() < number:
        time.sleep(0.05)


@pytest.mark.timeout(3 * PATIENCE_S)
def test_continuous_run_reads_what_comes_until_it_is_stopped(store: Entries, tmp_path: Path) -> None:
    output, log = tmp_path / "out", tmp_path / "log"
    process = begin(store, output, "--continuous", "1")
    try:
        for number in (1, 2):
            store.letter("a", store.now_ms() - 1000)
            wait_for_letters(log, number, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 143, log.read_text()[-3000:]
    finally:
        kill(process)
    assert [row["queue"] for row in rows(output, "bronze/dead")] == ["a", "a"]
    assert sum(row["dead"] for row in rows(output, "runs")) == 2


@pytest.mark.timeout(2 * PATIENCE_S)
def test_ctrl_c_while_spark_starts_ends_the_job(store: Entries, tmp_path: Path) -> None:
    store.letter("a", store.now_ms() - 1000)  # an empty store needs no Spark
    process = begin(store, tmp_path / "out")
    while process.poll() is None and not has_begun_java(process.pid):
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(PATIENCE_S) == 130, (tmp_path / "log").read_text()[-3000:]
    first, *_, told = logged(tmp_path / "log")
    assert first["action"] == "terminated"
    assert first["message"].startswith("interrupted: stopping once Spark has started")
    assert (told["code"], told["action"]) == (130, "failed")
    assert rows(tmp_path / "out", "bronze/dead") == []
    with pytest.raises(ProcessLookupError):  # no process of the group is left, Java included
        eventually_gone(process.pid)


@pytest.mark.timeout(2 * PATIENCE_S)
def test_second_ctrl_c_ends_the_job_at_once(store: Entries, tmp_path: Path) -> None:
    store.letter("a", store.now_ms() - 1000)  # an empty store needs no Spark
    process = begin(store, tmp_path / "out")
    while process.poll() is None and not has_begun_java(process.pid):
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    while process.poll() is None and not logged(tmp_path / "log"):
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE_S) == 130, (tmp_path / "log").read_text()[-3000:]
    first, second = logged(tmp_path / "log")  # it does not wait for Spark
    assert first["action"] == second["action"] == "terminated"
    assert second["message"] == "second signal: stopping at once"
    with pytest.raises(ProcessLookupError):
        eventually_gone(process.pid)
