"""Read the planned entries of one kind and write them to the archive, in parallel tasks.

A task reads its stretches and writes its own files; only the files that it reports at its end count. So a task that
runs twice, or continues after it was believed dead, adds nothing. Rows stay in Arrow's format from the store's answer
to the file: conversion to Spark's rows and Spark's writers would each cost several times as much.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from services.analytics.cleaning.cleaning import archived
from services.analytics.hour_files import HourFiles, Staged
from services.analytics.places import opened
from services.analytics.plan import Plan
from services.analytics.settings import Settings, Shape
from services.analytics.tasks import carried_out
from services.redis_stream.finding import open_store, streams
from services.redis_stream.options import Options
from services.redis_stream.pieces import Part, parts, read
from services.redis_stream.schema import Kind, arrow_schema

LEAST_ROWS = 50_000  # least rows of a task
TASKS_A_CORE = 3
STAGED = {"hour": pa.string(), "path": pa.string(), "rows": pa.int64()}


@dataclass(frozen=True, slots=True)
class Written:
    """The result of one kind: rows read, rows quarantined, staged files."""

    read: int = 0
    quarantined: int = 0
    files: tuple[Staged, ...] = ()


def archive(spark: SparkSession, settings: Settings, plan: Plan, kind: Kind, folder: str) -> Written:
    """Write all planned entries of one kind below a folder of the output. Raises DataLoss, StoreError."""
    options = _options(spark, settings, plan, kind)
    if options is None:
        return Written()
    with open_store(options) as reading:
        found = parts(reading, options, streams(reading, options))
    if not found:
        return Written()
    latest_ms = plan.now_ms + 1000 * plan.shape.clock_slack_s
    work = Archiving(options, kind, plan.shape, latest_ms, settings.output, folder)
    told = [Staged(**each) for each in carried_out(spark, found, work, STAGED)]
    files = sorted(told, key=lambda each: (each.hour, each.path))
    quarantined = sum(each.rows for each in files if not each.hour)
    return Written(sum(each.rows for each in files), quarantined, tuple(files))


def _options(spark: SparkSession, settings: Settings, plan: Plan, kind: Kind) -> Options | None:
    """Return the options of the data source, or None if nothing of this kind is planned."""
    wanted = plan.of(kind)
    if not wanted:
        return None
    expected = sum(abs(each.expected) for each in wanted.values())
    tasks = TASKS_A_CORE * spark.sparkContext.defaultParallelism
    return Options.parse(
        {
            "url": settings.store,
            "kind": str(kind),
            "start": json.dumps({key: each.start for key, each in wanted.items()}),
            "end": json.dumps({key: each.end for key, each in wanted.items()}),
            "bodies": plan.shape.read_bodies() if kind is Kind.DEAD else "full",
            "failOnDataLoss": str(settings.shape.fail_on_loss).lower(),
            "connectTimeoutS": str(settings.patience_s),
            "rowsPerPartition": str(max(LEAST_ROWS, math.ceil(expected / tasks))),
        }
    )


@dataclass(frozen=True)
class Archiving:
    """The work of a task, on any executor."""

    options: Options
    kind: Kind
    shape: Shape
    latest_ms: int
    output: str
    folder: str

    def __call__(self, name: str, part: Part) -> list[dict[str, Any]]:
        """Read a part and write its files. name: unique to the attempt."""
        files, root = opened(self.output)
        names = arrow_schema(self.kind).names
        with HourFiles(files, f"{root}/{self.folder}", self.kind, name) as written:
            for rows in read(self.options, part, names):
                written.add(archived(rows, self.kind, self.shape, self.latest_ms))
        return [asdict(each) for each in written.staged]
