"""Test an output in a bucket: the same files as in a folder, with the environment of other S3 clients."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from services.analytics import compaction
from services.analytics.files import Files
from services.analytics.run import hour_of, run
from services.analytics.settings import Settings, Shape
from tests.analytics.objects import BUCKET, objects
from tests.redis_stream.entries import Entries, fill_letters, fill_samples

OUTPUT = f"s3a://{BUCKET}/deep/penstock"


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    with objects(tmp_path) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield Files(OUTPUT)


def both(output: str | Path, store: Entries) -> list[Settings]:
    """Run twice."""
    shape = Shape(bodies="full", top=3)
    return [Settings(store.server.url, str(output), f"r{number}", shape) for number in (1, 2)]


def in_tasks(spark: SparkSession) -> None:
    """Set these variables in tasks, as the workers of Spark were started without them."""
    context = spark.sparkContext
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL"):
        context.environment[name] = os.environ[name]


def test_a_bucket_has_what_a_folder_has(
    spark: SparkSession,
    store: Entries,
    bucket: Files,
    tmp_path: Path,
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_tasks(spark)
    monkeypatch.setattr(compaction, "MANY", 1)  # so the second run joins files of the first
    fill_letters(store, chance, 60, 2)
    fill_samples(store, chance, 20, 2)
    local, remote = both(tmp_path / "out", store), both(OUTPUT, store)
    for settings in (local[0], remote[0]):
        run(spark, settings)
    fill_letters(store, chance, 40, 2)
    for settings in (local[1], remote[1]):
        run(spark, settings)
    folder = Files(str(tmp_path / "out"))
    tables = sorted(folder.walk("aggregates"))
    assert tables
    assert tables == sorted(bucket.walk("aggregates"))
    for path in tables:
        assert bucket.read_octets(path) == folder.read_octets(path), path
    joined = [path for path in bucket.walk("archive/dead") if "/r2-c0" in path]
    assert joined
    for kind in ("dead", "samples"):
        assert rows(bucket, kind) == rows(folder, kind) != []
    for path in ("state.json", "runs/r2/done.json", "reports/latest.json"):
        assert bucket.exists(path)
    assert bucket.list("runs/r2") == [each for each in bucket.list("runs/r2") if each.name != "staging"]
    assert not bucket.exists("runs/lock.json")


def rows(files: Files, kind: str) -> list[dict[str, Any]]:
    """Return rows of the archive with the day and hour of their file."""
    found = []
    for path in files.walk(f"archive/{kind}"):
        table = pq.read_table(BytesIO(files.read_octets(path)))
        found += [{**row, "": hour_of(path)} for row in table.to_pylist()]
    return sorted(found, key=lambda row: (row["stream"], row["id"]))
