"""Histograms: lists of counts, one for each bound and one for what is above; merged, and asked for quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pyspark.sql import Column
from pyspark.sql import functions as F


def merged(name: str, buckets: int) -> Column:
    """An aggregate: the sums by position."""
    return F.array(*[F.coalesce(F.sum(F.col(name)[at]), F.lit(0).cast("bigint")) for at in range(buckets)])


def counted(seconds: Column, bounds: Sequence[float]) -> Column:
    """An aggregate: how many values lie in each bucket; a value on a bound is below it."""
    edges = [None, *bounds, None]
    return F.array(*[_between(seconds, low, high) for low, high in pairwise(edges)])


def _between(seconds: Column, low: float | None, high: float | None) -> Column:
    lies = F.lit(True)
    if low is not None:
        lies = lies & (seconds > low)
    if high is not None:
        lies = lies & (seconds <= high)
    return F.count_if(lies)


def quantile(counts: Column, bounds: Sequence[float], share: float) -> Column:
    """The value that `share` of all do not exceed, linear inside of its bucket; above all bounds, the last one."""
    lows = F.array(*[F.lit(float(bound)) for bound in (0.0, *bounds)])
    highs = F.array(*[F.lit(float(bound)) for bound in (*bounds, bounds[-1])])
    rank = F.aggregate(counts, F.lit(0).cast("bigint"), lambda total, each: total + each) * F.lit(share)
    buckets = F.arrays_zip(counts.alias("n"), lows.alias("low"), highs.alias("high"))
    begin = F.struct(F.lit(0).cast("bigint").alias("seen"), F.lit(None).cast("double").alias("found"))

    def step(so_far: Column, bucket: Column) -> Column:
        number = bucket["n"]
        is_here = so_far["found"].isNull() & (number > 0) & (so_far["seen"] + number >= rank)
        value = bucket["low"] + (bucket["high"] - bucket["low"]) * ((rank - so_far["seen"]) / number)
        return F.struct(
            (so_far["seen"] + number).alias("seen"),
            F.when(is_here, value).otherwise(so_far["found"]).alias("found"),
        )

    return F.aggregate(buckets, begin, step, lambda last: last["found"])
