"""The table origins."""

from __future__ import annotations

from pyspark.sql import DataFrame

from services.analytics.gold.expressions import most_frequent, shaped
from services.analytics.tables import ORIGINS


def origins(dead: DataFrame, top: int) -> DataFrame:
    """Return the table origins, from dead letters: the `top` most frequent origins of each queue and hour."""
    counts = dead.groupBy(*ORIGINS.key_names()).count()
    return shaped(most_frequent(counts, top, "origin"), ORIGINS)
