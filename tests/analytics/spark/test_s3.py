"""Run the job with its output in a bucket, found by the environment of other S3 clients."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from services.store.model.keys import RegistryKeys
from tests.analytics.objects import BUCKET, objects
from tests.analytics.spark.test_kills import PATIENCE_S, command, environment
from tests.redis_stream.entries import Entries, fill_letters, fill_samples

OUTPUT = f"s3a://{BUCKET}/deep/of this"


def run(store: Entries, bucket: Mapping[str, str], name: str) -> list[dict[str, Any]]:
    """Carry out a run and return what it logged."""
    done = subprocess.run(
        command(store, Path("OUTPUT"), "--run-id", name, "--output", OUTPUT),
        env={**environment(), **bucket, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]


@pytest.mark.timeout(2 * PATIENCE_S)
def test_job_writes_its_tables_and_reports_into_a_bucket(
    store: Entries, tmp_path: Path, chance: random.Random
) -> None:
    fill_letters(store, chance, 40, 1)
    fill_samples(store, chance, 4, 1)
    with objects(tmp_path) as bucket:
        actions = {each["action"]: each for each in run(store, bucket, "r1")}
        assert "one job at a time" in actions["bucket"]["message"]
        url, options = OUTPUT.replace("s3a", "s3").replace(" ", "%20"), {**bucket, "AWS_ALLOW_HTTP": "true"}
        tables = {
            name: DeltaTable(f"{url}/{name}", storage_options=options).to_pyarrow_table()
            for name in ("bronze/dead", "bronze/samples", "gold/deaths", "runs")
        }
        assert sorted(tables["bronze/dead"]["id"].to_pylist()) == sorted(each["id"] for each in store.letters)
        assert len(tables["bronze/samples"]) == len(store.samples)
        assert sum(tables["gold/deaths"]["count"].to_pylist()) == 40
        assert tables["runs"]["run"].to_pylist() == ["r1"]
        (report,) = tmp_path.glob("data/**/reports/latest.json")
        assert store.server.call("GET", RegistryKeys().report).partition(b" ")[2] == report.read_bytes()
        assert "started" not in {each["action"] for each in run(store, bucket, "r2")}  # nothing is new
