"""Carry out runs of the job in this process, and read their tables without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import SparkSession

from services.analytics import job, preflight
from services.analytics.settings import Settings
from tests.redis_stream.entries import Entries


def carry_out(
    spark: SparkSession, entries: Entries, output: Path, run: str = "r1", **told: Any
) -> dict[str, Any]:
    """Do what `penstock analytics run` does, and return the row of `runs`."""
    settings = Settings(
        **{"store": entries.server.url, "output": str(output), "run": run, "patience_s": 2, **told}
    )
    job.run(settings, preflight.look(settings), lambda: spark)
    (row,) = [each for each in rows(output, "runs") if each["run"] == run]
    return row


def rows(output: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table by an independent reader; none if there is no table."""
    try:
        return list(DeltaTable(output / table).to_pyarrow_table().to_pylist())
    except TableNotFoundError:
        return []


def named(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted((row["queue"], row["id"]) for row in found)
