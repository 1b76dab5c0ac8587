"""Table changes: figures of an hour against the same figures of the week before.

Median and median distance stand for mean and deviation: one bad day in the week must not hide the next one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from services.analytics.aggregates.samples import HOURS

LEAST_HOURS = 24  # of history
LEAST_COUNT = 20  # messages, in the hour or as the median: fewer are chance
SUDDEN = 6.0  # spreads from the median
NORMAL = 1.4826  # from the median distance to the standard deviation
OF_METRIC = ["domain", "queue", "metric"]
COUNTS = ("in", "out", "refused", "deaths")  # an hour that has no row of them has 0
HOUR_S = 3600


def figures(traffic: DataFrame, depths: DataFrame, deaths: DataFrame) -> DataFrame:
    """day, hour, domain, queue, metric, value; from the tables of these names."""
    keys = [*HOURS, "domain", "queue"]
    of_traffic = traffic.groupBy(*keys).agg(
        F.sum("in").cast("double").alias("in"),
        F.sum("out").cast("double").alias("out"),
        F.sum("refused_all").cast("double").alias("refused"),
        F.max("put_p99").alias("put_p99"),
        F.max("wait_p99").alias("wait_p99"),
    )
    of_deaths = deaths.groupBy(*keys).agg(F.sum("count").cast("double").alias("deaths"))
    of_depths = depths.select(*keys, F.col("len_max").cast("double").alias("len_max"))
    return _long(of_traffic, keys).unionByName(_long(of_deaths, keys)).unionByName(_long(of_depths, keys))


def _long(rows: DataFrame, keys: list[str]) -> DataFrame:
    names = [name for name in rows.columns if name not in keys]
    return rows.unpivot([*keys], [*names], "metric", "value").filter("value is not null")


def changes(known: DataFrame, hours: list[str], week_days: int) -> DataFrame:
    """known: figures of the week and of the hours that are asked for ('YYYY-MM-DDTHH')."""
    at = F.unix_timestamp(F.concat_ws(" ", "day", "hour"), "yyyy-MM-dd HH")
    timed = known.withColumn("at", at).cache()
    wanted = timed.filter(F.concat_ws("T", "day", "hour").isin(hours))
    week = week_days * 24 * HOUR_S
    all_hours = timed.select("at").distinct()
    asked = wanted.select("at").distinct()
    in_week = (F.col("past") < F.col("at")) & (F.col("past") >= F.col("at") - week)
    past = all_hours.withColumnRenamed("at", "past")
    lengths = asked.join(F.broadcast(past), in_week).groupBy("at").agg(F.count("*").alias("week_hours"))
    enough = lengths.filter(F.col("week_hours") >= LEAST_HOURS)
    series = timed.select(*OF_METRIC).distinct().join(F.broadcast(enough))
    history = timed.select(*OF_METRIC, F.col("at").alias("past"), F.col("value").alias("then"))
    values = (
        series.join(history, OF_METRIC)
        .filter(in_week)
        .groupBy(*OF_METRIC, "at", "week_hours")
        .agg(F.sort_array(F.collect_list("then")).alias("values"))
    )
    values = series.join(values, [*OF_METRIC, "at", "week_hours"], "left")
    now = wanted.select(*OF_METRIC, "at", "value")
    return _judged(values.join(now, [*OF_METRIC, "at"], "left"))


def _judged(rows: DataFrame) -> DataFrame:
    none = F.array().cast("array<double>")
    there = F.coalesce("values", none)
    missing = F.greatest(F.col("week_hours") - F.size(there), F.lit(0)).cast("int")
    is_count = F.col("metric").isin(*COUNTS)
    filled = F.when(is_count, F.concat(F.array_repeat(F.lit(0.0), missing), there)).otherwise(there)
    rows = rows.withColumns(
        {
            "values": filled,
            "value": F.when(is_count, F.coalesce("value", F.lit(0.0))).otherwise(F.col("value")),
        }
    )
    rows = rows.filter("value is not null").filter(F.size("values") >= LEAST_HOURS)
    rows = rows.withColumn("week_median", _median(F.col("values")))
    distances = F.transform("values", lambda each: F.abs(each - F.col("week_median")))
    rows = rows.withColumn("week_spread", _median(F.array_sort(distances)) * NORMAL)
    # chance alone moves a count by its root; a latency or a length by a tenth means nothing
    floor = F.when(is_count, F.greatest(F.sqrt("week_median"), F.lit(1.0))).otherwise(
        F.greatest(F.col("week_median") / 10, F.lit(0.001))
    )
    rows = rows.withColumn("z", (F.col("value") - F.col("week_median")) / F.greatest("week_spread", floor))
    is_much = ~is_count | (F.greatest("value", "week_median") >= LEAST_COUNT)
    is_much = is_much & ((F.col("metric") != "len_max") | (F.greatest("value", "week_median") >= LEAST_COUNT))
    verdict = F.when(F.col("z") >= SUDDEN, "up").when(F.col("z") <= -SUDDEN, "down")
    time = F.timestamp_seconds("at")
    return rows.withColumns(
        {
            "day": F.date_format(time, "yyyy-MM-dd"),
            "hour": F.date_format(time, "HH"),
            "verdict": F.when(is_much, verdict),
        }
    ).filter("verdict is not null")


def _median(ordered: Column) -> Column:
    """Of a sorted list; of an even number, the mean of the two in the middle."""
    size = F.size(ordered)
    lower, upper = F.floor((size - 1) / 2).cast("int"), F.floor(size / 2).cast("int")
    return (F.get(ordered, lower) + F.get(ordered, upper)) / 2
