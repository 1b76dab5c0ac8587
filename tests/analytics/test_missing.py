"""Test the counts of what runs missed, by hour."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from pyspark.sql import SparkSession

from services.analytics.archive import Written
from services.analytics.compute import Compute
from services.analytics.files import Files
from services.analytics.hour_files import Staged
from services.analytics.missing import MOST_HOURS, Missing, of_runs, since, with_run
from services.analytics.plan import Plan
from services.analytics.publish import done_file, plan_file
from services.analytics.settings import Shape
from services.analytics.summaries import Summaries
from services.redis_stream.schema import Kind

HOUR_MS = 3_600_000
NOW_MS = 1_764_000_000_000  # 2025-11-24T16:00


def summary(now_ms: int, *, lost: int = 0, dead: int = 0, samples: int = 0) -> dict[str, Any]:
    return {
        "now_ms": now_ms,
        "dead": {"read": 9, "quarantined": dead, "gone": 4},
        "samples": {"read": 9, "quarantined": samples, "lost": lost},
    }


def test_runs_of_an_hour_are_summed_and_those_that_missed_nothing_leave_nothing() -> None:
    known: Missing = {}
    for each in (summary(NOW_MS, lost=3), summary(NOW_MS + 1, lost=4, dead=2), summary(NOW_MS + HOUR_MS)):
        known = with_run(known, each)
    assert known == {"2025-11-24T16": {"lost_samples": 7, "quarantined_dead": 2}}
    known = with_run(known, summary(NOW_MS + 2 * HOUR_MS, samples=5))
    assert since(known, "2025-11-24T17") == {"quarantined_samples": 5}
    assert since(known, "2025-11-24T16") == {
        "lost_samples": 7,
        "quarantined_dead": 2,
        "quarantined_samples": 5,
    }
    assert since(known, "") == since(known, "2025-11-24T16")


def test_streams_of_which_nobody_knows_how_much_is_missing_are_counted() -> None:
    told = {**summary(NOW_MS), "lost_streams": ["a", "b"]}
    assert with_run({}, told) == {"2025-11-24T16": {"lost_streams": 2}}
    assert with_run({}, summary(NOW_MS)) == {}  # of an older version


def test_rows_of_hours_that_are_closed_are_counted(tmp_path: Path) -> None:
    """Check late rows of both kinds, without those of open hours and the quarantine."""
    staged = (
        Staged("2025-11-22T15", "a", 3),
        Staged("2025-11-22T15", "b", 4),
        Staged("2025-11-22T16", "c", 50),
        Staged("", "d", 600),
    )
    written = {Kind.DEAD: Written(files=staged), Kind.SAMPLES: Written(files=staged[:1])}
    plan = Plan("r1", "abc", NOW_MS, "2025-11-22T16", [], Shape(), {})
    found = Compute(cast(SparkSession, None), Files(str(tmp_path)), plan, "staging", written)
    assert (found.late(""), found.late("2025-11-22T16"), found.skipped()) == (10, 0, ["2025-11-22T15"])
    assert with_run({}, {**summary(NOW_MS), "late": 10}) == {"2025-11-24T16": {"late": 10}}


def test_no_more_is_remembered_than_a_state_has_room_for() -> None:
    known: Missing = {}
    for number in range(MOST_HOURS + 5):
        known = with_run(known, summary(NOW_MS + number * HOUR_MS, lost=1))
    assert len(known) == MOST_HOURS
    assert "2025-11-24T20" not in known
    assert "2025-11-24T21" in known


def test_an_output_of_before_says_it_run_by_run(tmp_path: Path) -> None:
    files = Files(str(tmp_path))
    for name, told in (("b", summary(NOW_MS, lost=2)), ("a", summary(NOW_MS + HOUR_MS, lost=1))):
        files.write_json(done_file(name), told)
    files.write_json(plan_file("begun"), {})
    assert of_runs(files, Summaries(files)) == {
        "2025-11-24T16": {"lost_samples": 2},
        "2025-11-24T17": {"lost_samples": 1},
    }
