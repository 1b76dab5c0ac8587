"""Test the greatest and least settings, and documents that cannot be used."""

from __future__ import annotations

import json
import random
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from services.analytics.places import OutputError
from services.analytics.run import run
from services.analytics.settings import MOST_DIGITS, SHAPES, TIMES_S, Settings, Shape
from tests.analytics.spark.test_archive import rows, settings
from tests.redis_stream.entries import Entries, fill_letters, fill_samples


@pytest.mark.parametrize("end", [0, 1])
def test_a_run_ends_well_at_either_end_of_each_number(
    spark: SparkSession, store: Entries, tmp_path: Path, chance: random.Random, end: int
) -> None:
    shape: dict[str, Any] = {
        **{name: bounds[end] for name, bounds in SHAPES.items()},
        "bodies": ("0", "9" * MOST_DIGITS)[end],
    }
    times: dict[str, Any] = {name: bounds[end] for name, bounds in TIMES_S.items()}
    for name in ("r1", "r2"):  # the second run has a week of history and existing hours
        fill_letters(store, chance, 20, 2)
        if name == "r1":
            fill_samples(store, chance, 8, 2)
        done = run(spark, Settings(store.server.url, str(tmp_path), name, Shape(**shape), **times))
        assert done["dead"]["archived"] == 20
    assert len(rows(tmp_path / "archive/dead")) == 40


def planned(tmp_path: Path, name: str) -> Path:
    path = tmp_path / f"runs/{name}/plan.json"
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize("content", ["half a", "of too many days"])
def test_a_plan_that_cannot_be_carried_out_is_named_and_given_up(
    spark: SparkSession, store: Entries, tmp_path: Path, content: str
) -> None:
    path = planned(tmp_path, "a")
    shape: dict[str, Any] = {**Shape().to_json(), "retention_days": 999_999}
    old = {"version": 2, "run": "a", "dataset": "", "now_ms": 0, "closed": "", "again": [], "shape": shape}
    path.write_text(json.dumps({**old, "streams": {}}) if content == "of too many days" else content)
    store.letter("a", store.now_ms())
    folder = path.parent
    with pytest.raises(OutputError, match=f"plan.json cannot be used: .* removing the folder .*{folder}:"):
        run(spark, settings(store.server, tmp_path, "b"))
    assert not (tmp_path / "runs/b").exists()
    shutil.rmtree(folder)
    assert run(spark, settings(store.server, tmp_path, "b"))["dead"]["archived"] == 1


@pytest.mark.parametrize("name", ["state.json", "runs/r1/ready.json"])
def test_other_documents_that_cannot_be_used_are_named(
    spark: SparkSession, store: Entries, tmp_path: Path, name: str
) -> None:
    if name.startswith("runs"):
        planned(tmp_path, "r1").write_text("{}")
    (tmp_path / name).write_text('{"version": 2, "colour": "red"}')
    with pytest.raises(OutputError, match=f"{name} cannot be .*restore"):
        run(spark, settings(store.server, tmp_path, "r2"))


def test_what_is_nobodys_in_the_output_is_passed_over(
    spark: SparkSession, store: Entries, tmp_path: Path
) -> None:
    store.letter("a", store.now_ms())
    run(spark, settings(store.server, tmp_path, "r1"))
    (hour,) = (tmp_path / "archive/dead").glob("day=*/hour=*")
    (hour / "notes.txt").write_text("what was that?")
    for folder in ("aggregates/traffic", "aggregates/deaths", "archive/dead"):
        (tmp_path / folder / hour.parent.name / "hour=old").mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "day=today/hour=00").mkdir(parents=True)
    store.letter("a", store.now_ms())
    assert run(spark, settings(store.server, tmp_path, "r2", retention_days=1))["dead"]["archived"] == 1
    assert (hour / "notes.txt").exists()


def test_damaged_file_of_the_archive_is_named(spark: SparkSession, store: Entries, tmp_path: Path) -> None:
    store.letter("a", at := store.now_ms())
    folder = datetime.fromtimestamp(at / 1000, UTC).strftime("archive/dead/day=%Y-%m-%d/hour=%H")
    path = tmp_path / folder / "before.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"colour": ["red"]}), path)
    with pytest.raises(
        Exception, match=f"OutputError: output {folder}/before.parquet cannot be read: it has no column id"
    ):
        run(spark, settings(store.server, tmp_path))
