"""Test a killed executor: its work is repeated elsewhere, and no record is duplicated or missing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.analytics.spark.conftest import Done
from tests.analytics.spark.test_kills import PATIENCE_S, begin, check_same, kill, wait_until

# separate processes, as on a cluster, each with one task at a time
EXECUTORS = (
    *("--master", "local-cluster[1,1,1024]", "--conf", "spark.executor.memory=512m"),
    *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"),
)


def executors(process: subprocess.Popen[bytes]) -> list[int]:
    """Return the executors of this run, by their session."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes()
            if b"CoarseGrainedExecutorBackend" in words and os.getsid(int(each.name)) == process.pid:
                found.append(int(each.name))
        except OSError:  # the process has ended
            continue
    return found


@pytest.mark.timeout(2 * PATIENCE_S)
def test_run_survives_an_executor_killed_at_random(done: Done, tmp_path: Path, chance: random.Random) -> None:
    output, log = tmp_path / "out", tmp_path / "log"
    process = begin(done.store, output, *EXECUTORS)
    try:
        moment = chance.choice(("it has planned a batch", "it reads samples", "it computes hours"))
        wait_until(moment, output, process)
        while not (there := executors(process)):
            assert process.poll() is None, log.read_text()[-3000:]
            time.sleep(0.01)
        os.kill(chance.choice(there), signal.SIGKILL)
        print(f"killed one of {len(there)} when {moment}")
        assert process.wait(PATIENCE_S) == 0, log.read_text()[-3000:]
    finally:
        kill(process)
    check_same(done.output, output)
