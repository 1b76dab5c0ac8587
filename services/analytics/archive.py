"""Records as the archive keeps them: by day and hour, with what makes them comparable, without what is secret.

Rows that cannot be used have no day and hour: they go to the quarantine, with the same columns.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from services.analytics.fingerprint import fingerprint, pattern, redacted, redacted_octets
from services.analytics.plan import Plan
from services.analytics.schema import Kind
from services.analytics.settings import Settings, Shape

EARLIEST_MS = 946_684_800_000  # the year 2000
ROWS_A_TASK = 250_000  # and so, more or less, in a file of an hour
TASKS_A_CORE = 8  # at most
TIME = {Kind.DEAD: "died", Kind.SAMPLES: "at"}  # whose hour it is
HOUR = ("day", "hour")
NO_HOUR = "day=__HIVE_DEFAULT_PARTITION__"  # the folder that Spark makes of rows without one


@dataclass(frozen=True, slots=True)
class Written:
    read: int = 0
    quarantined: int = 0


def archive(spark: SparkSession, settings: Settings, plan: Plan, kind: Kind, target: str) -> Written:
    """Writes all that the plan has of one kind to `target`, by day and hour."""
    streams = plan.of(kind)
    if not streams:
        return Written()
    rows = by_hour(
        dead_letters(read(spark, settings, plan, kind), plan.shape)
        if kind is Kind.DEAD
        else read(spark, settings, plan, kind),
        TIME[kind],
        plan.now_ms + 1000 * plan.shape.clock_slack_s,
    )
    seen = Observation()
    counts = (F.count(F.lit(1)).alias("read"), F.count("problem").alias("quarantined"))
    tasks = _tasks(spark, sum(abs(each.expected) for each in streams.values()))
    rows.observe(seen, *counts).coalesce(tasks).write.mode("overwrite").partitionBy(*HOUR).parquet(target)
    return Written(**seen.get)


def read(spark: SparkSession, settings: Settings, plan: Plan, kind: Kind) -> DataFrame:
    streams = plan.of(kind)
    return (
        spark.read.format("redis_stream")
        .option("url", settings.store)
        .option("kind", str(kind))
        .option("start", json.dumps({key: each.start for key, each in streams.items()}))
        .option("end", json.dumps({key: each.end for key, each in streams.items()}))
        .option("bodies", plan.shape.read_bodies() if kind is Kind.DEAD else "full")
        .option("failOnDataLoss", str(settings.shape.fail_on_loss).lower())
        .option("connectTimeoutS", str(settings.patience_s))
        .load()
    )


def _tasks(spark: SparkSession, rows: int) -> int:
    cores = spark.sparkContext.defaultParallelism
    return max(cores, min(math.ceil(rows / ROWS_A_TASK), TASKS_A_CORE * cores))


def dead_letters(rows: DataFrame, shape: Shape) -> DataFrame:
    """With fingerprint and pattern; texts and bodies redacted, bodies as long as they are to be kept."""
    body = redacted_octets(F.col("body"), shape.redact)
    error = redacted(F.col("error"), shape.redact)
    return rows.withColumns(
        {
            "fingerprint": fingerprint(body),
            "pattern": pattern(error),
            "error": error,
            "note": redacted(F.col("note"), shape.redact),
            "body": _kept(body, shape.bodies),
            "raw": _kept_raw(shape),
        }
    )


def _kept(body: Column, bodies: str) -> Column:
    if bodies == "none":
        return F.lit(None).cast("binary")
    return body if bodies == "full" else F.substring(body, 1, int(bodies))


def _kept_raw(shape: Shape) -> Column:
    """Of what could not be read nobody knows which field has what: all of them are redacted, and the body is none."""
    raw = F.map_filter("raw", lambda name, _: name != "body") if shape.bodies == "none" else F.col("raw")
    if not shape.redact:
        return raw
    return F.transform_values(raw, lambda _, value: redacted_octets(value, shape.redact))


def by_hour(rows: DataFrame, time: str, latest_ms: int) -> DataFrame:
    """With day (YYYY-MM-DD) and hour (HH) of that column; a clock that cannot be right is a problem of its row."""
    at = F.col(time)
    wrong = (at < F.timestamp_millis(F.lit(EARLIEST_MS))) | (at > F.timestamp_millis(F.lit(latest_ms)))
    said = F.concat(F.lit(f"its clock: {time} is "), at.cast("string"))
    told = rows.withColumn("problem", F.coalesce(F.col("problem"), F.when(wrong, said)))
    usable = F.col("problem").isNull()
    return told.withColumns(
        {
            "day": F.when(usable, at.cast("date").cast("string")),
            "hour": F.when(usable, F.lpad(F.hour(at).cast("string"), 2, "0")),
        }
    )
