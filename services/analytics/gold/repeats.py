"""Find samples that were sent twice because the first answer was lost; the first of them is kept."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from services.analytics.gold.expressions import ms, number_of, quotient
from services.analytics.hours import HOUR_MS

# the identity of a sample, which its repeats share
NAMED_BY = ("dataset", "stream", "kind", "process", "n", "queue")
PLACE = ("dataset", "stream", "id")


def repeats(samples: DataFrame) -> DataFrame:
    """Return dataset, stream and id of samples whose identity came before, in their hour or the one before.

    Rows are rarely repeated: those that may be are found by a hash, so that few are compared. `depth` samples are
    never repeated.
    """
    hour = quotient(ms("at"), HOUR_MS).alias("hour_number")
    named = samples.where(F.col("kind") != "depth").select(
        *NAMED_BY, "id", "at", hour, F.xxhash64(*NAMED_BY).alias("hash")
    )
    suspects = named.groupBy("hash").count().where(F.col("count") > 1).select("hash")
    ordered = Window.partitionBy(*NAMED_BY).orderBy("at", number_of("id"))
    before = F.lag("hour_number").over(ordered)
    doubtful = named.join(F.broadcast(suspects), "hash").withColumn("before", before)
    return doubtful.where(F.col("before") >= F.col("hour_number") - 1).select(*PLACE)


def without(samples: DataFrame, again: DataFrame) -> DataFrame:
    """Return the samples without those that `repeats` returned."""
    return samples.join(F.broadcast(again), [*PLACE], "left_anti")
