"""Test the files that a task writes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.analytics.bronze import writing
from services.analytics.bronze.writing import FILES, Writing
from services.analytics.cleaning.cleaning import Cleaning
from services.analytics.tables import BRONZE
from services.redis_stream.columns import Origin, batch
from services.redis_stream.schema import Kind

HOUR_MS = 3_600_000
BEGIN_MS = 1_795_900_000_000 // HOUR_MS * HOUR_MS


def letter(number: int) -> list[object]:
    died = BEGIN_MS + number * HOUR_MS // 2  # two an hour
    told = {"reason": "expired", "enqueued": died, "died": died, "origin": "tmq 10.0.0.1", "acquired": 0}
    told |= {"failed": 0, "first": 0, "last": 0, "error": "", "body": "x" * 100}
    fields = [str(part).encode() for pair in told.items() for part in pair]
    return [f"{died}-0".encode(), fields if number else fields[2:]]  # the first one has no reason


@pytest.mark.parametrize("most", [1, 1 << 20])
def test_each_row_is_in_the_file_of_its_hour(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int
) -> None:
    monkeypatch.setattr(writing, "MOST_OCTETS", most)
    names = tuple(each.name for each in BRONZE[Kind.DEAD].columns)
    write = Writing(str(tmp_path), "bronze/dead", Cleaning(Kind.DEAD, names, "abc", 1 << 42))
    origin = Origin(Kind.DEAD, "s", "main", "q", "1")
    pages = [batch(origin, [letter(number) for number in range(first, first + 4)]) for first in (0, 4)]
    found = pa.Table.from_batches(write(iter(pages)), FILES).to_pylist()
    written = Counter[tuple[str, str]]()
    for file in found:
        path = tmp_path / "bronze/dead" / str(file["path"])
        rows = pq.ParquetFile(path).read()
        assert (file["octets"], file["rows"]) == (path.stat().st_size, len(rows))
        written[str(file["day"]), str(file["hour"])] += len(rows)
        assert not {"day", "hour"} & {*rows.column_names}
    assert [*written.values()] == [2, 2, 2, 2]
    assert sum(int(file["unreadable"]) for file in found) == 1
