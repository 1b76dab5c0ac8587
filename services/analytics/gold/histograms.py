"""Histograms: arrays of counts, one for each bound and one for values above; sums and quantiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from services.analytics.tables import QUANTILES

Numbers = npt.NDArray[Any]


def sums(name: str, buckets: int) -> list[Column]:
    """Return an aggregate for each bucket of a column of arrays."""
    return [F.sum(F.get(name, F.lit(at))).alias(_of(name, at)) for at in range(buckets)]


def counts(name: str, bucket: str, buckets: int) -> list[Column]:
    """Return an aggregate of `count` for each number of a bucket."""
    return [
        F.sum(F.when(F.col(bucket) == at, F.col("count")).otherwise(0)).alias(_of(name, at))
        for at in range(buckets)
    ]


def bucket(ms: Column, bounds_s: Sequence[float]) -> Column:
    """Return the bucket of a time; one that equals a bound is below it."""
    found = F.when(ms <= round(bounds_s[0] * 1000), 0)
    for at, bound in enumerate(bounds_s[1:], 1):
        found = found.when(ms <= round(bound * 1000), at)
    return found.otherwise(len(bounds_s))


def gathered(rows: DataFrame, **bounds_s: Sequence[float]) -> DataFrame:
    """Return the rows with the array of each histogram instead of its buckets, and with its quantiles."""
    for name, bounds in bounds_s.items():
        buckets = [_of(name, at) for at in range(len(bounds) + 1)]
        rows = rows.withColumn(name, F.array(*buckets)).drop(*buckets)
    for name, bounds in bounds_s.items():
        rows = rows.withColumn(f"{name}_quantiles", _quantiles(bounds)(name))
    found = [F.col(f"{name}_quantiles.{at}").alias(f"{name}_{at}") for name in bounds_s for at in QUANTILES]
    return rows.select("*", *found)


def _of(name: str, at: int) -> str:
    return f"{name}_{at}"


def _quantiles(bounds_s: Sequence[float]) -> Callable[..., Column]:
    """Return a function on a column of arrays, with a field for each of QUANTILES."""

    def quantiles(counts: pa.Array) -> pa.Array:
        flat: Numbers = counts.flatten().to_numpy()
        matrix = flat.reshape(-1, len(bounds_s) + 1)
        found = [quantile(matrix, bounds_s, share) for share in QUANTILES.values()]
        return pa.StructArray.from_arrays(found, names=[*QUANTILES])

    fields = ", ".join(f"{name}:double" for name in QUANTILES)
    # the stubs of PySpark demand a function type, of which PySpark warns
    made: Callable[..., Column] = arrow_udf(quantiles, f"struct<{fields}>")  # type: ignore[call-overload]
    return made


def quantile(counts: Numbers, bounds: Sequence[float], share: float) -> pa.Array:
    """Return the value that a share of the values does not exceed, interpolated within its bucket.

    It is the last bound for values above it, and null for rows without values. counts: rows x buckets.
    """
    lows, highs = np.array((0.0, *bounds)), np.array((*bounds, bounds[-1]))
    rows, seen = np.arange(len(counts)), np.cumsum(counts, axis=1)
    rank = seen[:, -1] * share
    is_here = (counts > 0) & (seen >= rank[:, None])
    at = is_here.argmax(axis=1)
    number = counts[rows, at]
    before = seen[rows, at] - number
    part = (rank - before) / np.maximum(number, 1)
    return pa.array(lows[at] + (highs[at] - lows[at]) * part, pa.float64(), mask=~is_here.any(axis=1))
