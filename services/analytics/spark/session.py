"""Create the Spark session of the job, with all its settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from services.analytics.output import create_folder, is_bucket
from services.analytics.settings import LOCAL
from services.analytics.spark.s3 import s3_settings
from services.redis_stream.source import RedisStream

CONFIG = {
    "spark.app.name": "penstock-analytics",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.pyspark.jvmStacktrace.enabled": "true",  # `failures` looks for the cause of an error
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.parquet.compression.codec": "zstd",
    # hours of older outputs are texts of two digits
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # small tables: the defaults of 50 and 32 tasks for each look at a table's log cost seconds
    "spark.databricks.delta.snapshotPartitions": "2",
    # partitions find the files of days and hours; statistics are left to other engines
    "spark.databricks.delta.stats.skipping": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    # all tables have more than the default of 100 generated classes; `--continuous` compiles none again
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # a run that was killed in its first batch may leave an incomplete file there
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}


# no checksum files in the output; s3a works on local files itself, and only with those that have them
LOCAL_FILES = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}


def _master(settings: Mapping[str, str]) -> str:
    """Return the master that Spark will use: from these settings, spark-submit, its files or its environment."""
    own = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        own.set(name, value)
    SparkContext._ensure_initialized(conf=own)  # starts Java with them, if it does not run yet  # noqa: SLF001 - PySpark offers no other way to begin Java
    return settings.get("spark.master") or SparkConf().get("spark.master") or "local[*]"


def start(
    master: str, driver_memory: str, conf: Iterable[str] = (), more: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark.

    Args:
        master: the master; '': that of spark-submit, otherwise local[*].
        driver_memory: heap of the driver, as for -Xmx.
        conf: NAME=VALUE each; they override the settings of the job.
        more: settings that depend on the output.
    """
    said = {name: value for name, _, value in (each.partition("=") for each in conf)}
    settings = {**CONFIG, "spark.driver.memory": driver_memory, **(more or {}), **said}
    if said.get("spark.eventLog.enabled") == "true" and (folder := said.get("spark.eventLog.dir")):
        create_folder(folder)  # Spark does not
    if master:
        settings["spark.master"] = master
    if LOCAL.fullmatch(_master(settings)):
        # No other machine needs to reach the driver. Workers run this Python instead of the first `python3` of PATH:
        # PySpark reads the variable, Java the setting.
        python = os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        own = dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1")
        settings = {**own, "spark.pyspark.python": python, **settings}
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if "spark.sql.shuffle.partitions" not in settings:
        spark.conf.set("spark.sql.shuffle.partitions", str(2 * spark.sparkContext.defaultParallelism))
    spark.dataSource.register(RedisStream)
    return spark


def settings_of_output(output: str) -> dict[str, str]:
    """Return the settings that an output needs."""
    return s3_settings(os.environ) if is_bucket(output) else LOCAL_FILES
