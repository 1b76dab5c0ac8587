"""Test which runs a run checks for their end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.analytics.begun import BEGUN, Begun, begin, read_begun
from services.analytics.files import Files
from services.analytics.places import OutputError
from services.analytics.plan import Plan
from services.analytics.publish import done_file, folder, plan_file, unfinished
from services.analytics.settings import Shape
from services.analytics.summaries import Summaries
from tests.analytics.asking import counted

DAY_MS = 86_400_000
NOW_MS = 1_764_000_000_000


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(str(tmp_path))


def plan(run: str, now_ms: int = NOW_MS, **shape: Any) -> Plan:
    return Plan(run, "", now_ms, "", [], Shape(**shape), {})


def begun(files: Files, plan: Plan) -> None:
    """Begin a run as the job does."""
    begin(files, read_begun(files, Summaries(files)), plan)


def test_only_the_one_that_was_begun_last_is_in_hand(files: Files) -> None:
    for run in ("b", "a"):
        begun(files, plan(run))
        assert read_begun(files, Summaries(files)).in_hand() == [run]
        assert unfinished(files, [run]) == [run]
        files.write_json(done_file(run), {"now_ms": NOW_MS})
        assert unfinished(files, [run]) == []
    assert read_begun(files, Summaries(files)) == Begun({"a": NOW_MS, "b": NOW_MS}, "a")


def test_a_run_that_was_killed_before_its_plan_was_there_is_none(files: Files) -> None:
    begun(files, plan("a"))
    files.delete(folder("a"))
    assert unfinished(files, read_begun(files, Summaries(files)).in_hand()) == []


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
            '{"version": 1, "planned": {}, "last": []}',
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
    found = read_begun(files, Summaries(files))
    assert found.planned == {"a": 5, "b": 7, "c": 9, "d": 0}
    assert unfinished(files, found.in_hand()) == ["c", "d"]
    assert found.before(9) == ["a", "b"]  # the age of d is unknown, so it is kept
    begun(files, plan("e"))
    assert read_begun(files, Summaries(files)) == Begun({**found.planned, "e": NOW_MS}, "e")


def test_what_was_removed_for_its_age_is_forgotten(files: Files) -> None:
    begun(files, plan("old", NOW_MS - 3 * DAY_MS))
    begun(files, plan("removed", NOW_MS - 3 * DAY_MS))
    begun(files, plan("young", NOW_MS - DAY_MS))
    files.delete(folder("removed"))
    files.delete(folder("young"))
    begun(files, plan("now", retention_days=2))
    assert sorted(read_begun(files, Summaries(files)).planned) == ["now", "old", "young"]


def test_runs_of_a_program_that_does_not_know_the_file_are_found(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check runs begun after a rollback: one may be unfinished, the others expire. Only these are read."""
    for number in range(50):
        begun(files, plan(f"ours-{number}", NOW_MS - 3 * DAY_MS))
        files.write_json(done_file(f"ours-{number}"), {"now_ms": NOW_MS - 3 * DAY_MS})
    for run in ("theirs", "theirs-left"):
        files.write_json(plan_file(run), plan(run, NOW_MS - DAY_MS).to_json())
    files.write_json(done_file("theirs"), {"now_ms": NOW_MS - DAY_MS})
    with counted(monkeypatch) as asked:
        found = read_begun(files, Summaries(files))
    assert asked == {
        "list": 1,
        "read_octets": 4,
    }  # the file, the summary of one run, summary and plan of the other
    assert found.others == ("theirs", "theirs-left")
    assert found.in_hand() == ["ours-49", "theirs", "theirs-left"]
    assert unfinished(files, found.in_hand()) == ["theirs-left"]
    assert {"theirs", "theirs-left"} < {*found.before(NOW_MS)}
    begun(files, plan("now"))
    again = read_begun(files, Summaries(files))
    assert (again.in_hand(), again.planned) == (["now"], {**found.planned, "now": NOW_MS})


def test_a_folder_in_its_place_is_named(files: Files) -> None:
    files.write_octets(f"{BEGUN}/x", b"")
    with pytest.raises(OutputError, match=r"/runs/begun\.json is a folder.*: remove it"):
        begun(files, plan("a"))
