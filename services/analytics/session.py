"""The Spark session of the job; everything that is set of Spark is set here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from services.analytics.settings import LOCAL
from services.analytics.source import RedisStream

CONFIG = {
    "spark.app.name": "penstock-analytics",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # hours are texts of two digits, and stay so
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",  # listing on the driver starts no job
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # checksum files beside each file would be part of what others find in the output
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.parquet.summary.metadata.level": "NONE",
    "spark.python.worker.reuse": "true",
}


def _master(settings: Mapping[str, str]) -> str:
    """What Spark will have: of these settings, of spark-submit, its files or its environment, in this order."""
    own = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        own.set(name, value)
    SparkContext._ensure_initialized(conf=own)  # Java begins with them, if it has not begun yet  # noqa: SLF001 - PySpark offers no other way to begin Java
    return settings.get("spark.master") or SparkConf().get("spark.master") or "local[*]"


def start(master: str, driver_memory: str, conf: Iterable[str] = ()) -> SparkSession:
    """master: '': as whoever started Spark has said, or else its own. conf: NAME=VALUE, over our own."""
    said = {name: value for name, _, value in (each.partition("=") for each in conf)}
    settings = {**CONFIG, "spark.driver.memory": driver_memory, **said}
    if master:
        settings["spark.master"] = master
    if LOCAL.fullmatch(_master(settings)):  # nobody else is to dial the driver
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
