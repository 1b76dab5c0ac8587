"""The table failures."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from services.analytics.gold.expressions import most_frequent, shaped
from services.analytics.tables import FAILURES

EXAMPLE = 200  # characters


def failures(dead: DataFrame, top: int) -> DataFrame:
    """Return the table failures, from dead letters: the `top` most frequent ones of each queue and hour.

    The example is the letter that died first; of several, the one with the least id as text.
    """
    letter = F.struct("died", "id", F.substring("error", 1, EXAMPLE).alias("error"))
    groups = dead.groupBy(*FAILURES.key_names()).agg(
        F.count("*").alias("count"), F.min(letter).alias("oldest"), F.max("died").alias("last")
    )
    kept = most_frequent(groups, top, "reason", "pattern", "fingerprint").select(
        "*",
        F.col("oldest.died").alias("first"),
        F.col("oldest.id").alias("example_id"),
        F.col("oldest.error").alias("example"),
    )
    return shaped(kept, FAILURES)
