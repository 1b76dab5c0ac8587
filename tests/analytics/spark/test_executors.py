"""An executor that is killed: what it was at is done again elsewhere, and no record is there twice or missing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.analytics.spark.entries import Entries, fill_letters, fill_samples
from tests.analytics.spark.test_kills import MOMENTS, PATIENCE_S, begin, kill, octets, rows

# processes of their own, as on a cluster, each with one task at a time
EXECUTORS = (
    *("--master", "local-cluster[2,1,1024]", "--conf", "spark.executor.memory=512m"),
    *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"),
)


def executors(process: subprocess.Popen[bytes]) -> list[int]:
    """Those of this run, by its session."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes()
            if b"CoarseGrainedExecutorBackend" in words and os.getsid(int(each.name)) == process.pid:
                found.append(int(each.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


@pytest.mark.timeout(2 * PATIENCE_S)
def test_killed_at_random(store: Entries, tmp_path: Path, chance: random.Random) -> None:
    fill_letters(store, chance, 60, 2)
    fill_samples(store, chance, 8, 2)
    whole, other = tmp_path / "whole", tmp_path / "other"
    whole.mkdir(), other.mkdir()
    assert begin(store, whole / "out").wait(PATIENCE_S) == 0, (whole / "log").read_text()[-3000:]
    process = begin(store, other / "out", *EXECUTORS)
    try:
        moment = chance.choice(("it has a plan", "it writes the archive", "it computes tables"))
        while not (MOMENTS[moment](other / "out") and (there := executors(process))):
            assert process.poll() is None, (other / "log").read_text()[-3000:]
            time.sleep(0.01)
        killed = chance.choice(there)
        os.kill(killed, signal.SIGKILL)
        print(f"killed one of {len(there)} when {moment}")
        assert process.wait(PATIENCE_S) == 0, (other / "log").read_text()[-3000:]
    finally:
        kill(process)
    assert octets(whole / "out/aggregates") == octets(other / "out/aggregates") != {}
    for kind in ("dead", "samples"):
        assert rows(whole / "out/archive" / kind) == rows(other / "out/archive" / kind) != []
