"""Append what the store has to bronze: one streaming query for each kind, exactly once by its checkpoint.

A lost checkpoint doubles nothing: the query then begins behind the greatest id of each stream in bronze.
"""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from services.analytics import delta, output
from services.analytics.cleaning.cleaning import Cleaning
from services.analytics.cleaning.records import NAME, Records, cleaning_option
from services.analytics.preflight import Seen
from services.analytics.settings import Settings
from services.analytics.tables import BRONZE
from services.redis_stream.schema import Kind

PART = sql.substring_index  # of an id, `<ms>-<number>`; both parts may have 64 bits


def ingest(spark: SparkSession, settings: Settings, kind: Kind, seen: Seen) -> None:
    """Append all entries up to the ends that were seen. A batch that a killed run began is finished first.

    Raises StreamingQueryException.
    """
    if not (ends := seen.ends(kind)):
        return
    checkpoint = f"_checkpoints/{seen.dataset}/{kind}"
    options = {
        "url": settings.store,
        "kind": kind,
        "end": json.dumps(ends),
        "bodies": settings.read_bodies() if kind is Kind.DEAD else "full",
        "failOnDataLoss": str(settings.fail_on_loss),
        "connectTimeoutS": str(settings.patience_s),
    }
    if not output.exists(settings.output, f"{checkpoint}/offsets"):
        options["start"] = json.dumps(_read(spark, settings, kind, seen))
    cleaning = Cleaning(
        kind,
        tuple(each.name for each in BRONZE[kind].columns),
        seen.dataset,
        seen.now_ms + 1000 * settings.clock_slack_s,
        settings.bodies,
        settings.redact,
    )
    spark.dataSource.register(Records)
    query = (
        spark.readStream.format(NAME)
        .options(**options, **cleaning_option(cleaning))
        .load()
        .writeStream.format("delta")
        .queryName(f"ingest {kind}")
        .option("checkpointLocation", output.spark_path(settings.output, checkpoint))
        .trigger(availableNow=True)
        .start(delta.path(settings.output, BRONZE[kind]))
    )
    query.awaitTermination()


def _read(spark: SparkSession, settings: Settings, kind: Kind, seen: Seen) -> dict[str, str]:
    """Return the greatest id in bronze of each stream of this store that still exists."""
    bronze = delta.read(spark, settings.output, BRONZE[kind])
    found = greatest_ids(bronze.where(sql.col("dataset") == seen.dataset)).collect()
    return {row.stream: row.id for row in found if row.stream in seen.streams}


def greatest_ids(bronze: DataFrame) -> DataFrame:
    """Return `stream` and the greatest `id` of each stream; ids are compared as pairs of numbers."""
    parts = [PART("id", "-", at).cast("decimal(20,0)") for at in (1, -1)]
    return bronze.groupBy("stream").agg(sql.max_by("id", sql.struct(*parts)).alias("id"))
