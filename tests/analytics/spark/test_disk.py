"""Test an output on a full disk: the job says so in one sentence, and the next run is right."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.analytics.spark.carried_out import carry_out, named, rows
from tests.analytics.spark.test_kills import PATIENCE_S, command, environment, logged
from tests.redis_stream.entries import Entries

LETTERS, SIZE = 40, 100_000  # octets of each body, incompressible
FULL = "2m"
# on its own file system, which ends with the process; a copy of the leftovers is kept
RUN = """
mount -t tmpfs -o size=$FULL none $OUTPUT
"$@" 2> $KEPT/log
status=$?
cp -r $OUTPUT $KEPT/full
exit $status
"""


@pytest.mark.timeout(2 * PATIENCE_S)
def test_run_on_a_full_disk_fails_and_the_next_one_is_right(
    spark: SparkSession, store: Entries, tmp_path: Path, chance: random.Random
) -> None:
    letters = sorted(
        ("a", store.letter("a", store.now_ms(), body=chance.randbytes(SIZE))) for _ in range(LETTERS)
    )
    output, full = tmp_path / "out", tmp_path / "full"
    output.mkdir()
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    words = ["unshare", "--mount", *rights, "sh", "-c", RUN, "sh"]
    done = subprocess.run(
        [*words, *command(store, output, "--bodies", "full")],
        env=environment() | {"OUTPUT": str(output), "KEPT": str(tmp_path), "FULL": FULL},
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1, done.stderr
    last = logged(tmp_path / "log")[-1]
    assert (last["action"], last["code"]) == ("failed", 1)
    assert last["message"].startswith("a disk is full: free space where the output or ")
    assert named(rows(full, "bronze/dead")) == []
    carry_out(spark, store, full, bodies="full")
    assert named(rows(full, "bronze/dead")) == letters
