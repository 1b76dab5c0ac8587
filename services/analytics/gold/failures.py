"""The table failures."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from services.analytics.gold.expressions import most_frequent, place_of, shaped
from services.analytics.tables import FAILURES

EXAMPLE = 200  # characters


def failures(dead: DataFrame, top: int) -> DataFrame:
    """Return the table failures, from dead letters: the `top` most frequent ones of each queue and hour.

    The example is the first letter by ms and number of its id, then by the stream.
    """
    example = F.struct(F.col("id"), F.substring("error", 1, EXAMPLE).alias("error"))
    place = F.struct(place_of("id"), "stream", "dataset")
    groups = dead.groupBy(*FAILURES.key_names()).agg(
        F.count("*").alias("count"),
        F.min("died").alias("first"),
        F.max("died").alias("last"),
        # with a number it is aggregated by hashes, otherwise all letters would be sorted
        F.min_by(example, place, 1)[0].alias("example_of"),
    )
    kept = most_frequent(groups, top, "reason", "pattern", "fingerprint").select(
        "*", F.col("example_of.id").alias("example_id"), F.col("example_of.error").alias("example")
    )
    return shaped(kept, FAILURES)
