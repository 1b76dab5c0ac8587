"""Test the joining of files of an hour: every row and column once, and files of limited size."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.analytics import compaction
from services.analytics.archive_files import batches, is_known
from services.analytics.compaction import Joined, Joining
from services.analytics.places import opened
from services.analytics.cleaning.cleaning import archived
from services.analytics.settings import Shape
from services.redis_stream.schema import Kind
from tests.analytics.test_records import NOW_MS, letters

FOLDER = "archive/dead/day=2027-01-15/hour=08"
HOUR = "2027-01-15T08"


def some(bodies: list[bytes]) -> pa.Table:
    rows = archived(
        letters(*({"died": NOW_MS, "body": body} for body in bodies)), Kind.DEAD, Shape(bodies="full"), NOW_MS
    )
    return pa.Table.from_batches([rows])


def write(root: Path, name: str, rows: pa.Table, group: int = 1000) -> str:
    path = f"{FOLDER}/{name}.parquet"
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, root / path, row_group_size=group)
    return path


def bodies(root: Path, paths: list[str]) -> list[bytes]:
    return [body for path in paths for body in pq.ParquetFile(root / path).read()["body"].to_pylist()]


def test_a_file_with_columns_of_a_newer_program_is_left_alone(tmp_path: Path) -> None:
    """Check that files with unknown columns are kept: joining would drop the columns."""
    newer = some([b"newer"]).append_column("weight", pa.array([7]))
    paths = [write(tmp_path, "r1", some([b"a", b"b"])), write(tmp_path, "r2", newer)]
    paths.append(write(tmp_path, "r3", some([b"c"]).drop_columns(["pattern"])))  # of an older version
    told = Joining(str(tmp_path), "staging")("n", Joined(Kind.DEAD, HOUR, tuple(paths)))
    assert [each for each in told if each["left"]] == [{"hour": HOUR, "path": paths[1], "left": True}]
    assert bodies(tmp_path, [each["path"] for each in told if not each["left"]]) == [b"a", b"b", b"c"]
    files, root = opened(str(tmp_path))
    assert [is_known(files, root, path, Kind.DEAD) for path in paths] == [True, False, True]


def test_what_is_joined_goes_on_in_another_file_where_one_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chance: random.Random
) -> None:
    large = [[chance.randbytes(1000) for _ in range(20)] for _ in range(6)]
    paths = [write(tmp_path, f"r{number}", some(each)) for number, each in enumerate(large)]
    monkeypatch.setattr(compaction, "HELD_OCTETS", 10_000)
    monkeypatch.setattr(compaction, "FILE_OCTETS", 30_000)
    told = Joining(str(tmp_path), "staging")("n", Joined(Kind.DEAD, HOUR, tuple(paths)))
    joined = [each["path"] for each in told]
    assert bodies(tmp_path, joined) == [body for each in large for body in each]
    assert len({*joined}) == 3
    for path in joined:  # the limit, a row group and the footer
        assert (tmp_path / path).stat().st_size < 30_000 + 22_000 + 10_000


def test_rows_are_read_of_one_row_group_at_a_time(tmp_path: Path) -> None:
    """Check that batches end at row groups, which are small where letters are large, to limit memory."""
    path = write(tmp_path, "r1", some([b"%d" % number for number in range(10)]), group=4)
    files, root = opened(str(tmp_path))
    assert [len(rows) for rows in batches(files, root, path, Kind.DEAD, 100)] == [4, 4, 2]
    assert [len(rows) for rows in batches(files, root, path, Kind.DEAD, 3)] == [3, 1, 3, 1, 2]
