"""Import the output of an older version, Parquet files of archived records, into the bronze tables, once."""

from __future__ import annotations

import json
import logging

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from services.analytics import delta, output
from services.analytics.bronze.log import appended
from services.analytics.output import OutputError
from services.analytics.preflight import KINDS
from services.analytics.tables import BRONZE
from services.redis_stream.convert import LATEST_MS
from services.redis_stream.schema import Kind

IMPORT = "import of "  # begins the name of a commit
STATE = "state.json"  # of an output of an older version
log = logging.getLogger(__name__)


def import_output(spark: SparkSession, old: str, new: str) -> dict[str, int]:
    """Append the archive and quarantine of an old output to the bronze tables of the new one.

    A repeated import appends nothing. The next run computes the gold tables of all hours, and reads each stream from
    where the old output ends.

    Args:
        spark: The session.
        old: The output of a version without Delta tables, a folder or s3a://bucket/folder.
        new: The output of this version, whose tables exist.

    Returns:
        Imported rows by kind.

    Raises:
        OutputError: If the old output has no `state.json` or names no store, or if the new one has read that store.
    """
    dataset = dataset_of(old)
    if output.exists(new, f"_checkpoints/{dataset}"):
        raise OutputError(
            f"{output.shown(new)} has already read the store of {output.shown(old)}, so their records would be there "
            "twice: import into a new output, and run the job after that"
        )
    return {str(kind): _import_kind(spark, old, new, kind, dataset) for kind in KINDS}


def dataset_of(old: str) -> str:
    """Return the dataset id in an old output. Raises OutputError."""
    if (octets := output.read(old, STATE)) is None:
        raise OutputError(
            f"{output.shown(old)} has no {STATE}: give the folder that --output of the older version named"
        )
    try:
        dataset = str(json.loads(octets)["dataset"])
    except (ValueError, KeyError, TypeError):
        dataset = ""
    if not dataset:
        raise OutputError(
            f"{output.shown(old)}/{STATE} names no dataset: run the older version once more, which adds it"
        )
    return dataset


def _import_kind(spark: SparkSession, old: str, new: str, kind: Kind, dataset: str) -> int:
    place = delta.path(new, BRONZE[kind])
    bronze = spark.read.format("delta").load(place)
    number = 0
    for part, folder in enumerate(("archive", "quarantine")):
        if not output.exists(old, f"{folder}/{kind}"):
            continue
        rows = _conformed(spark, bronze, output.spark_path(old, folder, kind), dataset)
        if rows is not None:
            before = delta.opened(new, BRONZE[kind]).version()
            name = f"{IMPORT}{dataset}/{folder}"
            _append(rows, place, name, part)
            number += appended(new, BRONZE[kind], before, name).rows
    log.info("imported", extra={"action": "imported", "kind": str(kind), "rows": number})
    return number


def _conformed(spark: SparkSession, bronze: DataFrame, place: str, dataset: str) -> DataFrame | None:
    """Return the rows of Parquet files with the columns of bronze; those that an older version lacks are null."""
    try:
        rows = spark.read.option("mergeSchema", "true").parquet(place)
    except AnalysisException:  # no files
        return None
    added = _added("id")
    days = {"day": sql.date_format(added, "yyyy-MM-dd"), "hour": sql.date_format(added, "HH")}
    made = {"dataset": sql.lit(dataset)} | {
        name: sql.col(name).cast("string") if name in rows.columns else day for name, day in days.items()
    }
    columns = []
    for field in bronze.schema:
        known = sql.col(f"`{field.name}`") if field.name in rows.columns else sql.lit(None)
        columns.append(made.get(field.name, known.cast(field.dataType)).alias(field.name))
    return rows.select(*columns)


def _added(name: str) -> Column:
    """Return when an entry was added, by its id; the year 2200 for later ones: ids may have any time."""
    ms = sql.substring_index(name, "-", 1).cast("decimal(20,0)")
    return sql.timestamp_millis(sql.least(ms, sql.lit(LATEST_MS)).cast("bigint"))


def _append(rows: DataFrame, place: str, name: str, number: int) -> None:
    """Append rows in one commit; a commit of this name and number is not repeated."""
    once = {"txnAppId": name, "txnVersion": str(number)}
    rows.write.format("delta").mode("append").options(**once).save(place)
