"""A run asks an output that is a year old no more than one of two weeks."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.analytics.run import run
from tests.analytics.asking import counted
from tests.analytics.spark.entries import Entries, fill_samples
from tests.analytics.spark.test_archive import settings

YOUNG, OLD = range(1, 20), range(20, 365)  # days
RUNS_A_DAY = 4
MANY = 100


def age(output: Path, days: range) -> None:
    """As if runs had come so many days ago: each has what the first one has written."""
    folders = sorted(path for path in output.glob("a*/*/day=*") if path.is_dir())
    newest = {path.parent: path for path in folders}
    for parent, path in newest.items():
        for back in days:
            day = date.fromisoformat(path.name.removeprefix("day=")) - timedelta(back)
            if not (parent / f"day={day}").exists():
                shutil.copytree(path, parent / f"day={day}")
    begun = json.loads((output / "runs/begun.json").read_text())
    for name in (f"old-{back}-{number}" for back in days for number in range(RUNS_A_DAY)):
        shutil.copytree(output / "runs/first", output / "runs" / name)
        begun["planned"][name] = begun["planned"]["first"]
    (output / "runs/begun.json").write_text(json.dumps(begun))


@pytest.mark.parametrize("retention_days", [0, 1000])
def test_an_old_output_is_asked_no_more_than_a_young_one(
    spark: SparkSession,
    store: Entries,
    tmp_path: Path,
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    retention_days: int,
) -> None:
    fill_samples(store, chance, 2, 1)
    store.letter("a", store.now_ms())
    run(spark, settings(store.server, tmp_path, "first"))
    asked: list[Counter[str]] = []
    for name, days in (("young", YOUNG), ("old", OLD)):
        age(tmp_path, days)
        store.letter("a", store.now_ms())
        with counted(monkeypatch) as found:
            run(spark, settings(store.server, tmp_path, name, retention_days=retention_days))
        asked.append(found)
    young, old = (sum(each.values()) for each in asked)
    assert old <= young + 20, asked  # an hour may turn between the two
    assert old < 600, asked


def test_a_first_run_on_an_output_of_before_reads_what_each_run_said_once(
    spark: SparkSession, store: Entries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.letter("a", store.now_ms())
    run(spark, settings(store.server, tmp_path, "first"))
    for number in range(MANY):
        shutil.copytree(tmp_path / "runs/first", tmp_path / f"runs/old-{number}")
    (tmp_path / "runs/begun.json").unlink()
    state = json.loads((tmp_path / "state.json").read_text())
    del state["missing"]
    (tmp_path / "state.json").write_text(json.dumps({**state, "version": 2}))
    with counted(monkeypatch) as found:
        run(spark, settings(store.server, tmp_path, "second", retention_days=1000))
    assert MANY < found["read_octets"] < MANY + 30, found
    assert len(json.loads((tmp_path / "runs/begun.json").read_text())["planned"]) == MANY + 2
