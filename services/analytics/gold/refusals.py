"""Count refusals by reason."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def with_refusals(sums: DataFrame, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the sums with `refused`, in order of the reasons, and `refused_all`; an empty map and 0 without any."""
    pairs = rows.select(*keys, F.explode("refused").alias("reason", "number"))
    by_reason = pairs.groupBy(*keys, "reason").agg(F.sum("number").alias("number"))
    entries = F.array_sort(F.collect_list(F.struct("reason", "number")))
    found = by_reason.groupBy(*keys).agg(
        F.map_from_entries(entries).alias("refused"), F.sum("number").alias("refused_all")
    )
    none = F.map_from_arrays(F.array().cast("array<string>"), F.array().cast("array<bigint>"))
    return sums.join(found, [*keys], "left").withColumns(
        {
            "refused": F.coalesce("refused", none),
            "refused_all": F.coalesce("refused_all", F.lit(0)),
        }
    )


def total(refused: str) -> Column:
    """Return the sum over all reasons of a row."""
    return F.coalesce(
        F.aggregate(F.map_values(refused), F.lit(0).cast("bigint"), lambda so_far, each: so_far + each),
        F.lit(0),
    )
