"""Ctrl-C and SIGTERM: a run is given up in order, says so in its last line, and the next one finishes it."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.analytics.spark.entries import Entries
from tests.analytics.spark.test_archive import named, rows
from tests.analytics.spark.test_kills import PATIENCE_S, begin


def logged(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def has_begun_java(pid: int) -> bool:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return any(b"spark" in Path(f"/proc/{child}/cmdline").read_bytes() for child in children)


@pytest.mark.timeout(2 * PATIENCE_S)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_in_the_middle_of_a_run(store: Entries, tmp_path: Path, number: signal.Signals, code: int) -> None:
    letter = store.letter("a", store.now_ms())
    output = tmp_path / "out"
    process = begin(store, output)
    while process.poll() is None and not (output / "runs/r1/plan.json").exists():
        time.sleep(0.005)
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == code, (tmp_path / "log").read_text()[-3000:]
    assert "terminated" in [
        line["action"] for line in logged(tmp_path / "log")
    ]  # what was under way may end after it
    assert not (output / "runs/lock.json").exists()
    assert begin(store, output).wait(PATIENCE_S) == 0, (tmp_path / "log").read_text()[-3000:]
    assert named(rows(output / "archive/dead")) == [("a", letter)]


def eventually_gone(group: int) -> None:
    """Raises ProcessLookupError."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        os.killpg(group, 0)
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)


@pytest.mark.timeout(2 * PATIENCE_S)
def test_while_spark_starts(store: Entries, tmp_path: Path) -> None:
    process = begin(store, tmp_path / "out")
    while process.poll() is None and not has_begun_java(process.pid):
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(PATIENCE_S) == 130, (tmp_path / "log").read_text()[-3000:]
    first, *_, told = logged(tmp_path / "log")
    assert first["action"] == "terminated"
    assert first["message"].startswith("told to end: it does once Spark has started")
    assert (told["code"], told["action"]) == (130, "failed")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ProcessLookupError):  # nothing of its group is left, nor is Java
        eventually_gone(process.pid)


@pytest.mark.timeout(2 * PATIENCE_S)
def test_twice_while_spark_starts(store: Entries, tmp_path: Path) -> None:
    process = begin(store, tmp_path / "out")
    while process.poll() is None and not has_begun_java(process.pid):
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    while process.poll() is None and not logged(tmp_path / "log"):
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE_S) == 130, (tmp_path / "log").read_text()[-3000:]
    first, second = logged(tmp_path / "log")  # nor does it wait for Spark
    assert first["action"] == second["action"] == "terminated"
    assert second["message"] == "told to end once more: it ends at once"
    with pytest.raises(ProcessLookupError):
        eventually_gone(process.pid)
