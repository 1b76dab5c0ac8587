"""Import the output of an older version, continue from where it ended, and query the tables with SQL.

`tests/analytics/old_output` was written by the job before Delta Lake: 6 dead letters of the queues `a` and `b`, one
that it could not read, and 4 samples of an edge.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from services.analytics import delta
from services.analytics.__main__ import import_command
from services.analytics.importing import import_output
from services.analytics.output import OutputError
from services.analytics.sql import register, show
from services.analytics.tables import ALL
from tests.analytics.spark.carried_out import carry_out, rows
from tests.docs.blocks import blocks
from tests.redis_stream.entries import Entries
from tests.redis_stream.spark.session import ROOT

OLD = ROOT / "tests/analytics/old_output"
ROWS = {"dead": 7, "samples": 4}


def archived() -> list[dict[str, Any]]:
    paths = sorted(OLD.rglob("*.parquet"))
    return [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]


def command_of_the_page(output: Path) -> dict[str, Any]:
    """Return the parameters of the command of docs/analytics.md, with the old output and a new one."""
    (text,) = [each.text for each in blocks("docs/analytics.md") if "penstock analytics import" in each.text]
    line = text.replace("/var/lib/penstock/analytics2", str(output)).replace(
        "/var/lib/penstock/analytics", str(OLD)
    )
    penstock, analytics, name, *words = shlex.split(line)
    assert (penstock, analytics, name) == ("penstock", "analytics", "import")
    return import_command.make_context(name, words).params


def restore(store: Entries) -> None:
    """Give the store the entries that the old output has, as if it were still that store."""
    for queue in ("b", "a"):
        store.queue(queue)
    for row in archived():
        store.add(row["stream"], {"reason": "expired"}, row["id"])


def test_old_output_is_imported_once_and_the_next_run_continues(
    spark: SparkSession, store: Entries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restore(store)
    new = store.letter("a", store.now_ms())
    told = command_of_the_page(tmp_path)
    delta.create(told["output"], ALL)
    assert import_output(spark, told["old_output"], told["output"]) == ROWS
    assert import_output(spark, str(OLD), str(tmp_path)) == {"dead": 0, "samples": 0}
    assert carry_out(spark, store, tmp_path)["dead"] == 1
    dead = rows(tmp_path, "bronze/dead")
    old = [row["id"] for row in archived() if row["stream"].endswith(":d")]
    assert sorted(row["id"] for row in dead) == sorted([*old, new])
    assert {row["dataset"] for row in dead} == {"abc"}
    assert [row["id"] for row in rows(tmp_path, "quarantine/dead")] == [
        row["id"] for row in archived() if row.get("problem")
    ]

    assert {table.view for table in register(spark, str(tmp_path))} == {table.view for table in ALL}
    query = "SELECT queue, sum(count) AS letters FROM deaths GROUP BY queue ORDER BY queue"
    show(spark.sql(query), "json")
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert shown == [{"queue": "a", "letters": 4}, {"queue": "b", "letters": 3}]
    show(spark.sql(query), "table")
    assert "|a    |4      |" in capsys.readouterr().out
    show(spark.sql("SELECT queue, age, map('a', 1) AS pairs FROM deaths WHERE queue = 'a'"), "csv")
    assert '"{""a"":1}"' in capsys.readouterr().out
    with pytest.raises(OutputError, match="has already read the store of"):
        import_output(spark, str(OLD), str(tmp_path))
    comments = {row.col_name: row.comment for row in spark.sql("DESCRIBE TABLE deaths").collect()}
    assert comments["acquired_mean"] == "average number of deliveries"


def test_folder_that_is_no_old_output_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"has no state\.json: give the folder that --output"):
        import_output(spark, str(tmp_path), str(tmp_path / "new"))
