"""Test Ctrl-C while Spark starts: the job says so, stops in order, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.analytics.spark.carried_out import rows
from tests.analytics.spark.test_kills import PATIENCE_S, begin, logged
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
