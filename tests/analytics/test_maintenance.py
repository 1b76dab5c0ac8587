"""Test that old rows are removed, small files joined and unused ones removed, within time limits."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from services.analytics import delta, job, preflight, runs
from services.analytics.maintenance import is_due, maintain
from services.analytics.settings import Settings
from services.analytics.tables import ALL, BRONZE, DEATHS, LONG, RUNS
from services.redis_stream.schema import Kind
from tests.redis_stream.entries import Entries
from tests.servers import Server

DAY_MS = 86_400_000
NOW_MS = 1_795_900_000_000  # 2026-11-28
Rows = Callable[[str], list[dict[str, Any]]]


def settings(output: Path, store: str = "redis://127.0.0.1", **told: Any) -> Settings:
    return Settings(store, str(output), told.pop("run", "r1"), **told)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """An output with 3 files of a day in bronze and in gold, and one of a day long ago."""
    delta.create(str(tmp_path), ALL)
    for number, day in enumerate(("2026-11-28", "2026-11-28", "2026-11-28", "2026-10-01")):
        place = {"day": day, "hour": "03", "queue": "a"}
        delta.append(str(tmp_path), BRONZE[Kind.DEAD], [{**place, "stream": "s", "id": f"{number}-0"}])
        delta.append(str(tmp_path), DEATHS, [{**place, "hour": f"{number:02}", "count": 1, "age": [0] * 16}])
    for number, days in ((1, 50), (2, 20), (3, 40)):
        delta.append(str(tmp_path), RUNS, [{"number": number, "now_ms": NOW_MS - days * DAY_MS}])
    return tmp_path


def files(output: Path, table: str) -> int:
    return len(DeltaTable(output / table).file_uris())


def test_old_days_are_removed_and_small_files_joined(output: Path) -> None:
    maintain(settings(output), NOW_MS, newest=3)
    for table in ("bronze/dead", "gold/deaths"):
        assert files(output, table) == 2
        assert len(DeltaTable(output / table).to_pyarrow_table()) == 4
    maintain(settings(output, retention_days=30), NOW_MS, newest=3)
    for table in ("bronze/dead", "gold/deaths"):
        assert files(output, table) == 1
        assert len(DeltaTable(output / table).to_pyarrow_table()) == 3
    kept = DeltaTable(output / "runs").to_pyarrow_table()["number"].to_pylist()
    assert sorted(kept) == [2, 3]  # the second one is of the last 30 days, the third one the newest


def test_files_that_no_version_has_are_removed_after_7_days(output: Path) -> None:
    old, new = (output / "gold/deaths/day=2026-11-28" / f"{name}.parquet" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"left by a killed run")
    before = time.time() - 8 * 86_400
    os.utime(old, (before, before))
    maintain(settings(output), NOW_MS, newest=3)
    assert not old.exists()
    assert new.exists()


def test_what_takes_too_long_is_left_to_the_next_day(
    output: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(0, 1000, 10))
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    maintain(settings(output, maintenance_s=1), NOW_MS, newest=3)
    assert [record.getMessage().split()[0] for record in caplog.records] == ["OPTIMIZE", "VACUUM"]
    assert files(output, "bronze/dead") == 2  # it was the first
    assert files(output, "gold/deaths") == 4


def test_first_run_of_a_day_maintains_the_tables(output: Path, running: Server) -> None:
    """Check it with a store in which nothing is new, so that Spark is not needed."""
    running.clear()
    store = Entries(running)
    how = settings(output, store.server.url, run="r2")
    counts = {each.name: 0 for each in RUNS.columns if each.type == LONG}
    row = {
        **counts,
        "number": 4,
        "run": "r1",
        "dataset": "abc",
        "now_ms": store.now_ms() - DAY_MS,
        "is_maintained": False,
    }
    known = {f"version of {kind}": delta.opened(str(output), BRONZE[kind]).version() for kind in BRONZE}
    delta.append(str(output), RUNS, [{**row, "ends": [], "added": [], "known": [*known.items()]}])

    def spark() -> Any:
        raise AssertionError("there is no work for Spark")

    job.run(how, preflight.look(how), spark)
    assert files(output, "bronze/dead") == 2
    assert (found := runs.last(str(output)))
    assert found.is_maintained


def test_maintenance_is_due_once_a_day() -> None:
    assert is_due(DAY_MS - 1, DAY_MS)
    assert not is_due(DAY_MS, 2 * DAY_MS - 1)
