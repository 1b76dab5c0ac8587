"""An output that has no room left: nothing half written is seen, and the next run is right."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from tests.analytics.spark.entries import Entries
from tests.analytics.spark.test_archive import named, rows
from tests.analytics.spark.test_kills import PATIENCE_S, command, environment

LETTERS, SIZE = 40, 100_000  # octets of each body, which no compression makes smaller
FULL, ROOMY = "2m", "64m"
# on a file system of its own, which goes with the process: a run, how it left the output, and one with more room
RUNS_TWICE = """
mount -t tmpfs -o size=$FULL none $OUTPUT
"$@"; echo $? > $KEPT/first
cp -r $OUTPUT $KEPT/full
mount -o remount,size=$ROOMY $OUTPUT
"$@"; echo $? > $KEPT/second
cp -r $OUTPUT $KEPT/roomy
"""


@pytest.mark.timeout(2 * PATIENCE_S)
def test_a_full_disk(store: Entries, tmp_path: Path, chance: random.Random) -> None:
    letters = sorted(
        ("a", store.letter("a", store.now_ms(), body=chance.randbytes(SIZE))) for _ in range(LETTERS)
    )
    output = tmp_path / "out"
    output.mkdir()
    told = {"OUTPUT": str(output), "KEPT": str(tmp_path), "FULL": FULL, "ROOMY": ROOMY}
    alone = [
        "unshare",
        "--mount",
        *([] if os.geteuid() == 0 else ["--map-root-user"]),
        "sh",
        "-c",
        RUNS_TWICE,
    ]
    done = subprocess.run(
        [*alone, "sh", *command(store, output, "--bodies", "full")],
        env={**environment(), **told},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert [(tmp_path / name).read_text() for name in ("first", "second")] == ["1\n", "0\n"], done.stderr[
        -3000:
    ]
    failed = [json.loads(line) for line in done.stderr.splitlines() if '"action": "failed"' in line]
    assert [each["code"] for each in failed] == [1]
    assert "No space left on device" in failed[0]["message"]
    assert sorted(path.name for path in (tmp_path / "full").iterdir()) == [
        "runs"
    ]  # no archive, tables or state
    assert named(rows(tmp_path / "roomy/archive/dead")) == letters
