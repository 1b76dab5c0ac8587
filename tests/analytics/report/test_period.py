"""Test which hours a report covers, and how often it accesses the output."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.analytics.files import Files
from services.analytics.hours import later
from services.analytics.report.period import Gone, Span, read_tables
from services.analytics.table_files import parquet, schema_of, table_path
from services.analytics.tables import DEATHS, TRAFFIC, Table
from tests.analytics.asking import counted

NOW = "2025-11-24T16"
STAGING = "runs/r/staging"
NOTHING = Gone("", frozenset())


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(str(tmp_path))


def put(files: Files, hours: list[str], table: Table = DEATHS, root: str = "aggregates") -> None:
    for hour in hours:
        files.write_octets(f"{root}/{table_path(table, hour)}", parquet(schema_of(table).empty_table()))


def span(files: Files, hours: int = 24, gone: Gone = NOTHING) -> Span:
    return read_tables(files, STAGING, NOW, hours, gone).span


def test_an_hour_that_has_not_begun_is_in_no_report(files: Files) -> None:
    """Check that the hour of a letter ahead of the store's clock counts only once it has begun."""
    put(files, [later(NOW, by) for by in (-24, -23, 0, 1, 9)])
    found = span(files)
    assert (found.first, found.last, found.known) == (later(NOW, -23), NOW, (later(NOW, -23), NOW))
    put(files, [later(NOW, -2)], root=f"{STAGING}/aggregates")
    assert later(NOW, -2) in span(files).known


def test_nothing_but_hours_that_have_not_begun_is_nothing(files: Files) -> None:
    put(files, [later(NOW, 1)])
    assert span(files).last == ""


def test_a_period_ends_where_there_is_something_however_long_ago(files: Files) -> None:
    old = [later(NOW, by) for by in (-2000, -2001, -2030)]
    put(files, old)
    put(files, [later(NOW, -30)], TRAFFIC)
    (files_gone,) = (f"aggregates/traffic/day={hour[:10]}/hour={hour[11:]}" for hour in [later(NOW, -30)])
    assert span(files).known == (later(NOW, -30),)
    found = span(files, gone=Gone("", frozenset({files_gone})))
    assert (found.last, found.known) == (old[0], (old[1], old[0]))
    assert span(files, gone=Gone(later(NOW, -1000), frozenset({files_gone}))).last == ""


def test_an_old_output_is_asked_no_more_than_a_young_one(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    for days in (range(4), range(4, 300)):
        put(files, [later(NOW, -24 * day) for day in days])
        with counted(monkeypatch) as found:
            assert len(span(files, 48).known) == 2
        asked.append(found)
    assert asked[0] == asked[1]
    assert asked[0]["list"] < 24
