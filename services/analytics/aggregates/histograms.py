"""Histograms: lists of counts, one per bound and one for values above; merging and quantiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.aggregates.grouping import Numbers


def matrix(lists: pa.ChunkedArray, buckets: int) -> Numbers:
    """Return lists as a matrix, rows x buckets."""
    flat: Numbers = pc.list_flatten(lists.combine_chunks()).to_numpy()
    return flat.reshape(-1, buckets)


def columns(name: str, counts: Numbers) -> dict[str, pa.Array]:
    """Return one column for each bucket, so that they can be summed."""
    return {of(name, at): pa.array(counts[:, at]) for at in range(counts.shape[1])}


def of(name: str, bucket: int) -> str:
    """Return the name of the column of a bucket."""
    return f"{name}_{bucket}"


def gathered(rows: pa.Table, name: str, buckets: int) -> Numbers:
    """Return the columns made by `columns` as a matrix."""
    return np.stack([rows[of(name, at)].to_numpy() for at in range(buckets)], axis=1)


def lists(counts: Numbers) -> pa.Array:
    """Return a matrix as a column of lists."""
    rows, buckets = counts.shape
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * buckets, pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(counts.reshape(-1), pa.int64()))


def bucket(seconds: Numbers, bounds: Sequence[float]) -> Numbers:
    """Return the bucket of each value; a value equal to a bound is below it."""
    return np.searchsorted(np.array(bounds), seconds, side="left")


def quantile(counts: Numbers, bounds: Sequence[float], share: float) -> pa.Array:
    """Return the value that a share of the values does not exceed, interpolated within its bucket.

    It is the last bound for values above it, and null for rows without values.
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
