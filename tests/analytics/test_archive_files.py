"""Test damaged and foreign files: named in errors, or left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.analytics.aggregates.hour import Share, tables
from services.analytics.archive_files import each_named, named, number_of_rows
from services.analytics.compaction import Joined, Joining
from services.analytics.files import Files
from services.analytics.hours import hours_below
from services.analytics.places import OutputError, opened
from services.analytics.cleaning.cleaning import archive_schema
from services.analytics.settings import Shape
from services.analytics.table_files import read_hours, table_path
from services.analytics.tables import DEATHS
from services.redis_stream.schema import Kind

PATH = "archive/dead/day=2026-01-31/hour=09/a.parquet"
HOUR = "2026-01-31T09"


def whole(path: Path) -> None:
    pq.write_table(archive_schema(Kind.DEAD).empty_table(), path)


def half(path: Path) -> None:
    rows = archive_schema(Kind.DEAD).empty_table()
    pq.write_table(rows, path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def foreign(path: Path) -> None:
    pq.write_table(pa.table({"colour": ["red"]}), path)


def of_other_types(path: Path) -> None:
    pq.write_table(pa.table({"stream": ["s"], "id": ["1-0"], "died": ["yesterday"]}), path)


WRONG = [half, nothing, foreign, of_other_types]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / PATH
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize("make", WRONG)
def test_a_file_of_the_archive_is_named(place: Path, tmp_path: Path, make: Callable[[Path], None]) -> None:
    files, root = opened(str(tmp_path))
    works: list[Callable[[], object]] = [
        lambda: tables(files, root, Share(Kind.DEAD, HOUR, (PATH,)), Shape()),
        lambda: Joining(str(tmp_path), "staging")("n", Joined(Kind.DEAD, HOUR, (PATH,))),
    ]
    whole(place)
    assert all(work() for work in works)
    make(place)
    for work in works:
        with pytest.raises(
            OutputError, match=f"output {PATH} cannot be read: .*[;:] restore it from a backup"
        ):
            work()


@pytest.mark.parametrize("make", [half, nothing])
def test_so_is_one_whose_rows_cannot_be_counted(
    place: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    whole(place)
    assert number_of_rows(*opened(str(tmp_path)), PATH) == 0
    make(place)
    with pytest.raises(OutputError, match=PATH):
        number_of_rows(*opened(str(tmp_path)), PATH)


@pytest.mark.parametrize("make", [half, nothing])
def test_so_is_one_of_a_table(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "aggregates" / table_path(DEATHS, HOUR)
    path.parent.mkdir(parents=True)
    make(path)
    with pytest.raises(
        OutputError, match=f"aggregates/{table_path(DEATHS, HOUR)} cannot be read.*move it out"
    ):
        read_hours(Files(str(tmp_path)), DEATHS, {HOUR: "aggregates"})
    path.rename(tmp_path / "out")
    assert len(read_hours(Files(str(tmp_path)), DEATHS, {HOUR: "aggregates"})) == 0


def test_one_that_cannot_be_reached_is_tried_again() -> None:
    """Check that the error advises to try again, as the file may be intact."""
    with pytest.raises(OutputError, match=r"try again\. If the file is damaged: "), named(PATH):
        raise PermissionError(13, "Permission denied")


def test_what_is_wrong_elsewhere_is_not_the_files_fault() -> None:
    def taken() -> None:
        for _ in each_named(PATH, [1, 2]):
            raise OSError("no space left on device")

    with pytest.raises(OSError, match=r"^no space left"):
        taken()


def test_folders_of_other_names_are_no_hours(tmp_path: Path) -> None:
    wrong = ("hour=old", "hour=24", "hour=9", "hour=099", "09")
    for name in ("hour=09", "hour=23", *wrong):
        (tmp_path / "x/day=2026-01-31" / name).mkdir(parents=True)
    (tmp_path / "x/day=2026-01-31/hour=10").write_text("a file")
    for name in (
        "day=2026-02-30",
        "day=20260131",
        "day=today",
        "2026-01-31",
        "day=2026-1-31",
        "day=9999-01-01",
    ):
        (tmp_path / "x" / name / "hour=09").mkdir(parents=True)
    (tmp_path / "x/day=2026-01-30").write_text("a file")
    assert hours_below(Files(str(tmp_path)), "x") == {"2026-01-31T09", "2026-01-31T23"}
