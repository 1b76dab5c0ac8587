"""The busiest 10 s of each group; counts of a sample are spread evenly over its interval."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from services.analytics.gold.expressions import SLOT_MS, ms, quotient
from services.analytics.hours import HOUR_MS

UNIT = 1000  # parts of a message; whole numbers, as sums of floats depend on their order
WAYS = ("in", "out")


def peaks(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return `in_peak` and `out_peak` by key, in messages per second, from samples with `at`, `ms`, `in` and `out`."""
    slots = _spread(rows, keys).groupBy(*keys, "slot").agg(*(F.sum(way).alias(way) for way in WAYS))
    return slots.groupBy(*keys).agg(
        *((F.max(way) * 1000 / (UNIT * SLOT_MS)).alias(f"{way}_peak") for way in WAYS)
    )


def _spread(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return a row for each slot that overlaps with a sample.

    A sample spans at most an hour and one slot: from the last slot before its hour.
    """
    end, length = F.col("end"), F.col("length")
    begin = F.greatest(end - length, end - F.pmod(end, F.lit(HOUR_MS)) - SLOT_MS)
    bounded = rows.select(
        *keys, *WAYS, ms("at").alias("end"), F.greatest("ms", F.lit(1)).alias("length")
    ).withColumn("begin", begin)
    first, last = quotient(F.col("begin"), SLOT_MS), quotient(end - 1, SLOT_MS)
    cut = bounded.withColumn("slot", F.explode(F.sequence(first, last)))
    return cut.select(*keys, "slot", *(_part(way).alias(way) for way in WAYS))


def _part(way: str) -> Column:
    """Return what happened in the slot, in parts of a message."""
    slot = F.col("slot")
    inside = F.least(F.col("end"), (slot + 1) * SLOT_MS) - F.greatest(F.col("begin"), slot * SLOT_MS)
    return F.rint(F.col(way) * (inside / F.col("length") * UNIT)).cast("bigint")
