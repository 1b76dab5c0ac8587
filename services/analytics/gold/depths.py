"""The table depths: states of queues, and increases of their counters between samples."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from services.analytics.gold.expressions import OF_QUEUE, ms, number_of, quotient, shaped
from services.analytics.hours import HOUR_MS
from services.analytics.tables import COUNTERS, DEPTHS

# every queue is sampled at least every 5 minutes; one that first appears after twice that is new
NEW_AFTER_MS = 600_000
STATES = ("len", "leased", "oldest_ms", "dead")
OWN = ("dataset", "domain", "queue")  # samples of one queue


def depths(samples: DataFrame) -> DataFrame:
    """Return the table depths, from `depth` samples. Counters are compared with the sample before.

    The first sample of a queue counts from 0 if the queue was created in the hour of the sample or the one before: if
    the sample says so; in samples of older versions, if its id changed or other queues were sampled long before.
    Otherwise it is only the base, as the earlier counts may belong to any hour. A counter that fell adds nothing.

    Args:
        samples: all samples of the hours and of the hour before each; differences of the first hour are too small.
    """
    at, number = ms("at").alias("ms"), quotient(ms("at"), HOUR_MS).alias("hour_number")
    looks = samples.where(F.col("kind") == "depth").select(
        *OF_QUEUE, "dataset", "qid", "age_ms", *STATES, *COUNTERS, "id", at, number
    )
    risen = _risen(looks.join(F.broadcast(_began(looks)), ["dataset", "domain", "hour_number"]))
    by_dataset = risen.groupBy("dataset", *OF_QUEUE).agg(
        F.count("*").alias("samples"),
        F.sum("len").alias("len_sum"),
        F.min("len").alias("len_min"),
        *(F.max(name).alias(f"{name}_max") for name in ("len", "leased", "oldest_ms", "ms")),
        F.max(F.when(F.col("is_last"), F.col("dead"))).alias("dead"),
        F.sum(F.col("fell").cast("bigint")).alias("resets"),
        *(F.sum(name).alias(name) for name in COUNTERS),
    )
    found = by_dataset.groupBy(*OF_QUEUE).agg(
        (F.sum("len_sum") / F.sum("samples")).alias("len_mean"),
        F.min("len_min").alias("len_min"),
        *(F.max(name).alias(name) for name in ("len_max", "leased_max", "oldest_ms_max")),
        F.max_by("dead", F.struct("ms_max", "dataset")).alias("dead_last"),
        *(F.sum(name).alias(name) for name in ("samples", "resets", *COUNTERS)),
    )
    return shaped(found, DEPTHS)


def _began(looks: DataFrame) -> DataFrame:
    """Return when sampling of a domain began, in each hour and the one before."""
    first = looks.groupBy("dataset", "domain", "hour_number").agg(F.min("ms").alias("ms"))
    two_hours = Window.partitionBy("dataset", "domain").orderBy("hour_number").rangeBetween(-1, 0)
    return first.select("dataset", "domain", "hour_number", F.min("ms").over(two_hours).alias("began"))


def _risen(looks: DataFrame) -> DataFrame:
    """Return the samples with the increases instead of the counters, and whether a counter fell."""
    ordered = Window.partitionBy(*OWN).orderBy("ms", number_of("id"))
    before = {
        name: F.lag(name).over(ordered).alias(f"last_{name}") for name in ("hour_number", "qid", *COUNTERS)
    }
    is_last = F.lead("hour_number").over(ordered)
    seen = looks.select("*", *before.values(), is_last.alias("next_hour"))
    has_before = F.coalesce(F.col("last_hour_number") >= F.col("hour_number") - 1, F.lit(False))
    is_of_one_life = has_before & F.col("qid").eqNullSafe(F.col("last_qid"))
    says_so = F.col("age_ms").isNotNull()
    is_late = F.col("ms") - F.col("began") > NEW_AFTER_MS
    told = seen.withColumns(
        {
            "is_same": is_of_one_life & ~says_so,
            "is_new": F.when(says_so, _is_young()).when(has_before, ~is_of_one_life).otherwise(is_late),
        }
    )
    fell = F.lit(False)
    for name in COUNTERS:
        fell |= F.col(name) < F.col(f"last_{name}")
    return told.select(
        *("dataset", *OF_QUEUE, *STATES, "ms"),
        (F.col("next_hour").isNull() | (F.col("next_hour") > F.col("hour_number"))).alias("is_last"),
        (F.col("is_same") & fell).alias("fell"),
        *(_rise(name).alias(name) for name in COUNTERS),
    )


def _is_young() -> Column:
    """Return whether the queue was created in the hour of the sample or the one before."""
    return F.col("hour_number") - quotient(F.col("ms") - F.col("age_ms"), HOUR_MS) <= 1


def _rise(name: str) -> Column:
    more = F.greatest(F.col(name) - F.col(f"last_{name}"), F.lit(0))
    return F.when(F.col("is_same"), more).when(F.col("is_new"), F.col(name)).otherwise(0)
