"""Samples as aggregates need them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from services.analytics.tables import HOUR

HOURS = [each.name for each in HOUR]
SLOT_MS = 10_000
NAMED_BY = ("stream", "kind", "process", "n", "queue")  # a repeat of a sample has the same


def once(samples: DataFrame) -> DataFrame:
    """Without repeats: of those in one hour the first stays.

    Repeats are rare, so all rows are looked at by a short hash, and only those that may be repeated are compared.
    """
    own = samples.filter("kind <> 'depth'")
    named = own.withColumn("name", F.xxhash64(*HOURS, *NAMED_BY))
    suspects = named.groupBy("name").count().filter("count > 1").select("name")
    if suspects.isEmpty():
        return own
    doubtful = named.join(F.broadcast(suspects), "name", "left_semi").drop("name")
    first = doubtful.withColumn("place", id_order()).withColumn("least", F.min("place").over(_same()))
    kept = first.filter("place = least").drop("place", "least")
    return named.join(F.broadcast(suspects), "name", "left_anti").drop("name").unionByName(kept)


def _same() -> WindowSpec:
    return Window.partitionBy(*HOURS, *NAMED_BY)


def id_order() -> Column:
    """What sorts as ids do: ms and number."""
    parts = F.split("id", "-")
    return F.struct(parts[0].cast("bigint").alias("ms"), parts[1].cast("decimal(20,0)").alias("number"))


def slot() -> Column:
    """Which 10 s it was in."""
    return F.floor(F.unix_millis("at") / SLOT_MS)


def refusals(samples: DataFrame, keys: list[str]) -> DataFrame:
    """keys, refused (by reason, sorted), refused_all; only of keys with refusals."""
    by_reason = (
        samples.filter(F.size("refused") > 0)
        .select(*keys, F.explode("refused").alias("reason", "number"))
        .groupBy(*keys, "reason")
        .agg(F.sum("number").alias("number"))
    )
    pairs = F.array_sort(F.collect_list(F.struct("reason", "number")))
    return by_reason.groupBy(*keys).agg(
        F.map_from_entries(pairs).alias("refused"), F.sum("number").alias("refused_all")
    )


def with_refusals(rows: DataFrame, samples: DataFrame, keys: list[str]) -> DataFrame:
    """An empty map and 0 where there were none."""
    nothing = F.map_from_arrays(F.array().cast("array<string>"), F.array().cast("array<bigint>"))
    return rows.join(refusals(samples, keys), keys, "left").withColumns(
        {"refused": F.coalesce("refused", nothing), "refused_all": F.coalesce("refused_all", F.lit(0))}
    )
