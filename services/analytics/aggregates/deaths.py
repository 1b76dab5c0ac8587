"""Tables deaths, origins, failures and redrives."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from services.analytics.aggregates.samples import HOURS
from services.analytics.histograms import counted, quantile
from services.analytics.tables import AGE_S, DEATHS, FAILURES, ORIGINS, QUANTILES, REDRIVES

OF_QUEUE = [*HOURS, "domain", "queue"]
NUMBER_BITS = 20  # of an id as one whole number: its ms before them; good until the year 2248
EXAMPLE = 200  # characters


def deaths(dead: DataFrame) -> DataFrame:
    age = (F.unix_millis("died") - F.unix_millis("enqueued")) / 1000
    found = dead.groupBy(*DEATHS.key_names()).agg(
        F.count("*").alias("count"),
        F.sum("size").alias("octets"),
        counted(age, AGE_S).alias("age"),
        (F.sum("acquired") / F.count("*")).alias("acquired_mean"),
        F.count_if(F.col("redriven") > 0).alias("redriven"),
    )
    return found.withColumns(
        {f"age_{at}": quantile(F.col("age"), AGE_S, share) for at, share in QUANTILES.items()}
    )


def origins(dead: DataFrame, top: int) -> DataFrame:
    return _most_frequent(
        dead.groupBy(*ORIGINS.key_names()).agg(F.count("*").alias("count")), top, ["origin"]
    )


def failures(dead: DataFrame, top: int) -> DataFrame:
    """What is looked for in a second pass is only the examples of the most frequent."""
    place = _place()
    counts = dead.groupBy(*FAILURES.key_names()).agg(
        F.count("*").alias("count"),
        F.min("died").alias("first"),
        F.max("died").alias("last"),
        F.min(place).alias("place"),
    )
    most = _most_frequent(counts, top, ["reason", "pattern", "fingerprint"])
    named = most.withColumn("example_id", _id_of(F.col("place"))).drop("place")
    example = F.substring("error", 1, EXAMPLE).alias("example")
    examples = dead.select(*OF_QUEUE, F.col("id").alias("example_id"), example)
    wanted = F.broadcast(named.select(*OF_QUEUE, "example_id"))
    found = examples.join(wanted, [*OF_QUEUE, "example_id"], "left_semi").dropDuplicates(
        [*OF_QUEUE, "example_id"]
    )
    return named.join(found, [*OF_QUEUE, "example_id"], "left")


def _place() -> Column:
    parts = F.split("id", "-")
    number = F.least(parts[1].cast("decimal(20,0)"), F.lit((1 << NUMBER_BITS) - 1)).cast("bigint")
    return F.shiftleft(parts[0].cast("bigint"), NUMBER_BITS) + number


def _id_of(place: Column) -> Column:
    ms, number = F.shiftright(place, NUMBER_BITS), place.bitwiseAND(F.lit((1 << NUMBER_BITS) - 1))
    return F.concat_ws("-", ms.cast("string"), number.cast("string"))


def _most_frequent(counts: DataFrame, top: int, then: list[str]) -> DataFrame:
    """Of each queue and hour so many rows; those that are as frequent by their names."""
    order = Window.partitionBy(*OF_QUEUE).orderBy(F.desc("count"), *then)
    return counts.withColumn("rank", F.row_number().over(order)).filter(F.col("rank") <= top).drop("rank")


def redrives(dead: DataFrame, depths: DataFrame) -> DataFrame:
    """depths: the table."""
    keys = REDRIVES.key_names()
    back = depths.filter("redriven > 0").select(*keys, "redriven")
    again = dead.filter("redriven > 0").groupBy(*keys).agg(F.count("*").alias("died_again"))
    both = back.join(again, keys, "full").fillna(0, ["redriven", "died_again"])
    failed = F.least(F.col("died_again") / F.col("redriven"), F.lit(1.0))
    return both.withColumn("success", F.when(F.col("redriven") > 0, 1 - failed))
