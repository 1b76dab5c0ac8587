"""The job's own file submitted by Spark's own program, which says where it runs. Another one is in test_commands.py."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyspark
import pytest

from tests.analytics.spark.conftest import ROOT
from tests.analytics.spark.entries import Entries
from tests.analytics.spark.test_archive import named, rows
from tests.analytics.spark.test_kills import PATIENCE_S, environment

SUBMIT = Path(pyspark.__file__).parent / "bin/spark-submit"
FILE = ROOT / "services/analytics/__main__.py"


@pytest.mark.timeout(2 * PATIENCE_S)
@pytest.mark.parametrize(
    ("of_spark", "of_job", "master"),
    [
        (["--master", "local[1]"], ["--master", "local[2]"], "local[2]"),
        (["--conf", "spark.master=local[3]", "--driver-memory", "600m"], [], "local[3]"),
        ([], [], "local[*]"),
    ],
)
def test_its_master_is_the_jobs(
    store: Entries, tmp_path: Path, of_spark: list[str], of_job: list[str], master: str
) -> None:
    letter = store.letter("a", store.now_ms())
    command = [
        str(SUBMIT),
        *of_spark,
        str(FILE),
        "--store",
        store.server.url,
        "--output",
        str(tmp_path),
        *of_job,
    ]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr[-3000:]
    # Spark's program tells what ours says where it tells everything else: on its output
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [each["master"] for each in told if each.get("action") == "started"] == [master]
    assert named(rows(tmp_path / "archive/dead")) == [("a", letter)]
