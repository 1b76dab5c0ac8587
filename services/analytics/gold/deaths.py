"""The table deaths."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from services.analytics.gold import histograms
from services.analytics.gold.expressions import ms, ratio, shaped
from services.analytics.tables import AGE_S, DEATHS


def deaths(dead: DataFrame) -> DataFrame:
    """Return the table deaths, from dead letters."""
    keys = DEATHS.key_names()
    age = histograms.bucket(ms("died") - ms("enqueued"), AGE_S)
    # by bucket first, as one count is less work for a letter than 16
    by_age = dead.groupBy(*keys, age.alias("bucket")).agg(
        F.count("*").alias("count"),
        F.sum("size").alias("octets"),
        F.sum("acquired").alias("acquired"),
        F.count_if(F.col("redriven") > 0).alias("redriven"),
    )
    sums = by_age.groupBy(*keys).agg(
        *(F.sum(name).alias(name) for name in ("count", "octets", "acquired", "redriven")),
        *histograms.counts("age", "bucket", len(AGE_S) + 1),
    )
    mean = ratio(F.col("acquired"), F.col("count"))
    return shaped(histograms.gathered(sums, age=AGE_S).withColumn("acquired_mean", mean), DEATHS)
