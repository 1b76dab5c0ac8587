"""Which runs a run asks whether they have ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.analytics.begun import BEGUN, Begun, begin, read_begun
from services.analytics.files import Files
from services.analytics.plan import Plan
from services.analytics.publish import done_file, folder, plan_file, unfinished
from services.analytics.settings import Shape

DAY_MS = 86_400_000
NOW_MS = 1_764_000_000_000


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(str(tmp_path))


def plan(run: str, now_ms: int = NOW_MS, **shape: Any) -> Plan:
    return Plan(run, "", now_ms, "", [], Shape(**shape), {})


def test_only_the_one_that_was_begun_last_is_in_hand(files: Files) -> None:
    for run in ("b", "a"):
        begin(files, plan(run))
        assert read_begun(files).in_hand() == [run]
        assert unfinished(files, [run]) == [run]
        files.write_json(done_file(run), {"now_ms": NOW_MS})
        assert unfinished(files, [run]) == []
    assert read_begun(files) == Begun({"a": NOW_MS, "b": NOW_MS}, "a")


def test_a_run_that_was_killed_before_its_plan_was_there_is_none(files: Files) -> None:
    begin(files, plan("a"))
    files.delete(folder("a"))
    assert unfinished(files, read_begun(files).in_hand()) == []


@pytest.mark.parametrize(
    "spoilt",
    [
        *(
            None,
            "",
            "[]",
            "{}",
            '{"version": 1, "planned": {}, "last": "gone"}',
            '{"planned": 3, "last": "a"}',
        ),
        *(
            '{"version": 9, "planned": {"x": 1}, "last": "x"}',
            '{"version": 1, "planned": {"a": []}, "last": "a"}',
        ),
    ],
)
def test_where_that_is_not_said_all_are_looked_through(files: Files, spoilt: str | None) -> None:
    for run, now_ms in (("a", 5), ("b", 7), ("c", 9)):
        files.write_json(plan_file(run), plan(run, now_ms).to_json())
    for run, now_ms in (("a", 5), ("b", 7)):
        files.write_json(done_file(run), {"now_ms": now_ms})
    files.write_octets("runs/d/plan.json", b"[]")
    if spoilt is not None:
        files.write_octets(BEGUN, spoilt.encode())
    found = read_begun(files)
    assert found.planned == {"a": 5, "b": 7, "c": 9, "d": 0}
    assert unfinished(files, found.in_hand()) == ["c", "d"]
    assert found.before(9) == ["a", "b", "d"]
    begin(files, plan("e"))
    assert read_begun(files) == Begun({**found.planned, "e": NOW_MS}, "e")


def test_what_was_removed_for_its_age_is_forgotten(files: Files) -> None:
    begin(files, plan("old", NOW_MS - 3 * DAY_MS))
    begin(files, plan("removed", NOW_MS - 3 * DAY_MS))
    begin(files, plan("young", NOW_MS - DAY_MS))
    files.delete(folder("removed"))
    files.delete(folder("young"))
    begin(files, plan("now", retention_days=2))
    assert sorted(read_begun(files).planned) == ["now", "old", "young"]
