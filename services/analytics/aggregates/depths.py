"""Table depths: how queues stood, and by how much their counters rose from one look to the next."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from services.analytics.aggregates.samples import HOURS, id_order
from services.analytics.tables import COUNTERS, DEPTHS

NEW_AFTER_MS = 600_000  # every queue is looked at each 5 minutes: one that comes later than twice that is new
HOUR_MS = 3_600_000


def depths(samples: DataFrame) -> DataFrame:
    """Of all hours that it is given. For exact differences it needs the hour before, too.

    A queue's first look counts from 0 if the queue was made since (another id than before, or others were looked at
    long before it), else it is where counting begins. A counter that fell counts nothing at that look.
    """
    looks = samples.filter("kind = 'depth'").select(
        *HOURS,
        "domain",
        "queue",
        "qid",
        "len",
        "leased",
        "oldest_ms",
        "dead",
        *COUNTERS,
        id_order().alias("place"),
    )
    rises = looks.withColumn("hours", F.floor(F.col("place.ms") / HOUR_MS)).join(
        F.broadcast(_first_looks(looks)), ["domain", "hours"], "left"
    )
    risen = _risen(rises)
    last = F.max_by("dead", "place")
    return risen.groupBy(*DEPTHS.key_names()).agg(
        F.count("*").alias("samples"),
        F.min("len").alias("len_min"),
        (F.sum("len") / F.count("len")).alias("len_mean"),
        F.max("len").alias("len_max"),
        F.max("leased").alias("leased_max"),
        F.max("oldest_ms").alias("oldest_ms_max"),
        last.alias("dead_last"),
        F.count_if("fell").alias("resets"),
        *[F.sum(f"more_{name}").alias(name) for name in COUNTERS],
    )


def _first_looks(looks: DataFrame) -> DataFrame:
    """domain, hours, since: when looks began in this hour or the one before."""
    begun = looks.groupBy("domain", F.floor(F.col("place.ms") / HOUR_MS).alias("hours")).agg(
        F.min("place.ms").alias("since")
    )
    later = begun.select("domain", (F.col("hours") + 1).alias("hours"), F.col("since"))
    return begun.unionByName(later).groupBy("domain", "hours").agg(F.min("since").alias("since"))


def _risen(looks: DataFrame) -> DataFrame:
    order = Window.partitionBy("domain", "queue").orderBy("place")
    before = F.lag(F.struct("qid", "hours", *COUNTERS)).over(order)
    known = looks.withColumn("before", before)
    is_near = F.col("before").isNotNull() & (F.col("hours") - F.col("before.hours") <= 1)
    is_same = is_near & (F.col("before.qid") == F.col("qid"))
    is_new = (is_near & (F.col("before.qid") != F.col("qid"))) | (
        ~is_near & (F.col("place.ms") - F.col("since") > NEW_AFTER_MS)
    )
    known = known.withColumns(
        {"same": F.coalesce(is_same, F.lit(False)), "new": F.coalesce(is_new, F.lit(False))}
    )
    fell = F.lit(False)
    for name in COUNTERS:
        fell = fell | (F.col(name) < F.col(f"before.{name}"))
    return known.withColumns(
        {"fell": F.col("same") & fell, **{f"more_{name}": _more(name) for name in COUNTERS}}
    )


def _more(name: str) -> Column:
    rise = F.greatest(F.col(name) - F.col(f"before.{name}"), F.lit(0))
    return F.when(F.col("same"), rise).when(F.col("new"), F.col(name)).otherwise(F.lit(0)).cast("bigint")
