"""Create the Spark session of the job, with all its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from services.analytics.settings import LOCAL
from services.redis_stream.source import RedisStream

CONFIG = {
    "spark.app.name": "penstock-analytics",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # hours are texts of two digits
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",  # list on the driver, without a job
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # no checksum files in the output
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.parquet.summary.metadata.level": "NONE",
    "spark.python.worker.reuse": "true",
}


def _master(settings: Mapping[str, str]) -> str:
    """Return the master that Spark will use: from these settings, spark-submit, its files or its environment."""
    own = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        own.set(name, value)
    SparkContext._ensure_initialized(conf=own)  # starts Java with them, if it does not run yet  # noqa: SLF001 - PySpark offers no other way to begin Java
    return settings.get("spark.master") or SparkConf().get("spark.master") or "local[*]"


def start(master: str, driver_memory: str, conf: Iterable[str] = ()) -> SparkSession:
    """Start Spark.

    Args:
        master: the master; '': that of spark-submit, otherwise local[*].
        driver_memory: heap of the driver, as for -Xmx.
        conf: NAME=VALUE each; they override the settings of the job.
    """
    said = {name: value for name, _, value in (each.partition("=") for each in conf)}
    settings = {**CONFIG, "spark.driver.memory": driver_memory, **said}
    if master:
        settings["spark.master"] = master
    if LOCAL.fullmatch(_master(settings)):  # no other machine needs to reach the driver
        settings = {
            **dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1"),
            **settings,
        }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.shuffle.partitions", str(4 * spark.sparkContext.defaultParallelism))
    spark.dataSource.register(RedisStream)
    return spark
