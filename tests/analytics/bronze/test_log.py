"""Test what counts as appended to a bronze table, and tables whose folders are incomplete."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql.pandas.types import to_arrow_schema

from services.analytics import delta
from services.analytics.bronze.log import INGEST, all_hours, appended
from services.analytics.tables import BRONZE
from services.redis_stream.schema import Kind

TABLE = BRONZE[Kind.DEAD]


@pytest.fixture
def output(tmp_path: Path) -> str:
    """An output with a table of bronze without rows."""
    delta.create(str(tmp_path), [TABLE])
    return str(tmp_path)


def append(
    output: str, hour: str, number: int, name: str = f"{INGEST}query", problem: str | None = None
) -> None:
    row = {"day": hour[:10], "hour": hour[11:], "stream": "s", "id": f"{number}-0", "problem": problem}
    rows = pa.Table.from_pylist([row], to_arrow_schema(TABLE.schema(), timezone="UTC"))
    once = CommitProperties(app_transactions=[Transaction(name, number)])
    write_deltalake(Path(output) / "bronze/dead", rows, mode="append", commit_properties=once)


def test_rows_of_the_job_count_and_hours_of_all_commits_are_touched(output: str) -> None:
    append(output, "2026-11-28T01", 1)
    since = appended(output, TABLE, -1).version
    append(output, "2026-11-28T02", 2)
    append(output, "2026-11-28T03", 3, "import of abc/archive")
    found = appended(output, TABLE, since)
    assert (found.rows, found.hours) == (1, {"2026-11-28T02", "2026-11-28T03"})
    assert appended(output, TABLE, since, "import of ").rows == 1
    assert appended(output, TABLE, found.version).hours == frozenset()


def test_joined_files_are_not_new(output: str) -> None:
    append(output, "2026-11-28T01", 1)
    append(output, "2026-11-28T01", 2)
    since = appended(output, TABLE, -1).version
    DeltaTable(Path(output) / "bronze/dead").optimize.compact()
    found = appended(output, TABLE, since)
    assert found.version > since
    assert (found.rows, found.hours) == (0, frozenset())


def test_hours_with_unreadable_rows_are_known(output: str) -> None:
    append(output, "2026-11-28T01", 1)
    append(output, "2026-11-28T02", 2, problem="it has no reason")
    assert "2026-11-28T02" in appended(output, TABLE, -1).unreadable


def test_all_hours_are_touched_where_the_log_is_incomplete(output: str) -> None:
    """Check it with a commit that Delta Lake has cleaned up, and with a table that was made again."""
    for number in (1, 2):
        append(output, f"2026-11-28T0{number}", number)
    table = DeltaTable(Path(output) / "bronze/dead")
    table.create_checkpoint()
    (Path(output) / f"bronze/dead/_delta_log/{1:020}.json").unlink()
    every = {"2026-11-28T01", "2026-11-28T02"}
    assert appended(output, TABLE, 0).hours == every == all_hours(output, TABLE)
    assert appended(output, TABLE, 99).hours == every


def test_a_table_without_its_first_commit_is_created(tmp_path: Path) -> None:
    (tmp_path / "bronze/dead/_delta_log").mkdir(parents=True)
    delta.create(str(tmp_path), [TABLE])
    assert delta.opened(str(tmp_path), TABLE).version() == 0
