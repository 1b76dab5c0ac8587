"""The table redrives."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from services.analytics.gold.expressions import OF_QUEUE, ratio, shaped
from services.analytics.tables import REDRIVES


def redrives(deaths: DataFrame, depths: DataFrame) -> DataFrame:
    """Return the table redrives, from rows of the tables deaths and depths of the same hours."""
    none = F.lit(0).cast("bigint")
    again = deaths.select(*OF_QUEUE, none.alias("redriven"), F.col("redriven").alias("died_again"))
    back = depths.select(*OF_QUEUE, "redriven", none.alias("died_again"))
    number, died = F.col("redriven"), F.col("died_again")
    sums = (
        again.unionByName(back)
        .groupBy(*OF_QUEUE)
        .agg(*(F.sum(name).alias(name) for name in ("redriven", "died_again")))
        .where((number > 0) | (died > 0))
    )
    success = F.when(number > 0, 1 - F.least(ratio(died, number), F.lit(1.0)))
    return shaped(sums.withColumn("success", success), REDRIVES)
