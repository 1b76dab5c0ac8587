"""Run work in parts as tasks of Spark, which repeats parts whose executor is lost."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

PART = "number int, part binary"
Told = list[dict[str, Any]]


@dataclass(frozen=True)
class _Work:
    work: Callable[[str, Any], Told]
    told: pa.Schema

    def __call__(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in parts:
            for part in batch.to_pylist():
                name = f"{part['number']:05d}-{uuid.uuid4().hex}"
                told = self.work(name, pickle.loads(part["part"]))
                yield pa.RecordBatch.from_pylist(told, schema=self.told)


def carried_out(
    spark: SparkSession,
    parts: Sequence[Any],
    work: Callable[[str, Any], Told],
    told: Mapping[str, pa.DataType],
) -> Told:
    """Return the rows that all parts report, unsorted.

    Args:
        spark: the session.
        parts: the parts of the work; they are pickled.
        work: called with a name unique to the attempt, and the part; it is pickled. A part may run more than once: what
            it writes must be under its name, and counts only if it is reported.
        told: columns of the reported rows.
    """
    if not parts:
        return []
    schema = pa.schema(list(told.items()))
    tasks = [(number, pickle.dumps(part)) for number, part in enumerate(parts)]
    rows = spark.createDataFrame(spark.sparkContext.parallelize(tasks, len(tasks)), PART)
    found: Told = rows.mapInArrow(_Work(work, schema), from_arrow_schema(schema)).toArrow().to_pylist()
    return found
