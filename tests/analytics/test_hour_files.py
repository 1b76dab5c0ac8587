"""Test the files by hour: every row once, for any number of hours and rows."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSystem

from services.analytics import hour_files
from services.analytics.hour_files import HourFiles, folder_of
from services.analytics.cleaning.cleaning import archived
from services.analytics.settings import Shape
from services.redis_stream.schema import Kind
from tests.analytics.test_records import NOW_MS, letters

HOUR_MS = 3_600_000


def files_at(folder: Path) -> HourFiles:
    files, root = FileSystem.from_uri(folder.as_uri())
    return HourFiles(files, root, Kind.DEAD, "7-a")


def some(chance: random.Random, number: int, hours: int) -> pa.RecordBatch:
    died = [NOW_MS - chance.randrange(hours) * HOUR_MS for _ in range(number)]
    return archived(letters(*({"died": at} for at in died)), Kind.DEAD, Shape(), NOW_MS)


def test_every_row_is_written_once_whatever_is_held_and_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chance: random.Random
) -> None:
    monkeypatch.setattr(hour_files, "SPLIT_ROWS", 30)
    monkeypatch.setattr(hour_files, "GROUP_ROWS", 7)
    monkeypatch.setattr(hour_files, "HELD_OCTETS", 5_000)
    monkeypatch.setattr(hour_files, "OPEN", 3)
    expected: Counter[str] = Counter()
    with files_at(tmp_path) as files:
        for _ in range(20):
            rows = some(chance, chance.randrange(1, 25), 12)
            expected.update(at.strftime("%Y-%m-%dT%H") for at in rows["died"].to_pylist())
            files.add(rows)
    assert sum((Counter({each.hour: each.rows}) for each in files.staged), Counter()) == expected
    assert len({each.path for each in files.staged}) == len(files.staged) > 12
    for each in files.staged:
        assert each.path.startswith(f"{folder_of(each.hour)}/7-a-")
        found = pq.ParquetFile(tmp_path / each.path).read()
        assert {at.strftime("%Y-%m-%dT%H") for at in found["died"].to_pylist()} == {each.hour}
        assert len(found) == each.rows


def test_what_cannot_be_used_is_apart(tmp_path: Path) -> None:
    rows = archived(letters({"died": NOW_MS + 1}, {"died": NOW_MS}), Kind.DEAD, Shape(), NOW_MS)
    with files_at(tmp_path) as files:
        files.add(rows)
    assert sorted((each.hour, each.path, each.rows) for each in files.staged) == [
        ("", "quarantine/7-a-0.parquet", 1),
        ("2027-01-15T08", "day=2027-01-15/hour=08/7-a-1.parquet", 1),
    ]


def test_an_hour_goes_on_in_another_file_where_one_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chance: random.Random
) -> None:
    """Check the limit of a file: buckets copy at most 5 GiB, and publishing copies."""
    monkeypatch.setattr(hour_files, "SPLIT_ROWS", 10)
    monkeypatch.setattr(hour_files, "GROUP_ROWS", 10)
    monkeypatch.setattr(hour_files, "FILE_OCTETS", 30_000)
    bodies = [[chance.randbytes(1000) for _ in range(10)] for _ in range(12)]
    with files_at(tmp_path) as files:
        for each in bodies:
            told = ({"died": NOW_MS, "body": body} for body in each)
            files.add(archived(letters(*told), Kind.DEAD, Shape(bodies="full"), NOW_MS))
    assert [each.rows for each in files.staged] == [30, 30, 30, 30]
    assert len({each.path for each in files.staged}) == 4
    found = [
        body
        for each in files.staged
        for body in pq.ParquetFile(tmp_path / each.path).read()["body"].to_pylist()
    ]
    assert found == [body for each in bodies for body in each]
