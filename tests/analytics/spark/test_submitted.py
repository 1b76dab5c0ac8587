"""Submit the job's file with spark-submit; test_commands.py runs the command of the documentation."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from services.store.model.keys import RegistryKeys
from services.store.redis.library import source
from tests.analytics.spark.carried_out import carry_out, named, rows
from tests.analytics.spark.test_kills import PATIENCE_S, environment
from tests.redis_stream.entries import Entries
from tests.redis_stream.spark.session import ROOT

SUBMIT = Path(pyspark.__file__).parent / "bin/spark-submit"
FILE = ROOT / "services/analytics/__main__.py"


@pytest.mark.timeout(2 * PATIENCE_S)
def test_submitted_job_has_its_own_master_and_exits_with_3_if_the_store_refuses_the_report(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    letter = store.letter("a", store.now_ms())
    store.server.call("FUNCTION", "FLUSH")
    of_spark = ("--conf", "spark.master=local[3]", "--driver-memory", "600m")
    of_job = (
        "--store",
        store.server.url,
        "--output",
        str(tmp_path),
        "--run-id",
        "r1",
        "--master",
        "local[1]",
    )
    done = subprocess.run(
        [str(SUBMIT), *of_spark, str(FILE), "run", *of_job],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    # spark-submit forwards the log of the job to its output
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [each["master"] for each in told if each.get("action") == "started"] == ["local[1]"]
    assert done.returncode == told[-1]["code"] == 3, done.stderr[-3000:]
    assert "the output is complete, but the store did not accept the report: " in told[-1]["message"]
    assert named(rows(tmp_path, "bronze/dead")) == [("a", letter)]

    reports = {path.name: path.read_bytes() for path in (tmp_path / "reports").iterdir()}
    store.server.call("FUNCTION", "LOAD", source())
    carry_out(spark, store, tmp_path)
    assert reports == {path.name: path.read_bytes() for path in (tmp_path / "reports").iterdir()}
    given = store.server.call("GET", RegistryKeys().report).partition(b" ")[2]
    assert given == reports["latest.json"]
