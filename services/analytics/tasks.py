"""Work in parts, each a task of Spark: carried out wherever there is a core, and anew where one was lost."""

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
    """What all parts told, in no order.

    work: is given a name that no other attempt has, and the part. Both it and the parts must pickle. A part whose
    executor is lost, or believed to be, is done again: what it writes must be under its name, and counts only when it
    is told of.
    """
    if not parts:
        return []
    schema = pa.schema(list(told.items()))
    tasks = [(number, pickle.dumps(part)) for number, part in enumerate(parts)]
    rows = spark.createDataFrame(spark.sparkContext.parallelize(tasks, len(tasks)), PART)
    found: Told = rows.mapInArrow(_Work(work, schema), from_arrow_schema(schema)).toArrow().to_pylist()
    return found
