"""The Spark session of the job; everything that is set of Spark is set here."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from services.analytics.source import RedisStream

LOCAL = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?")

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


def start(master: str, driver_memory: str) -> SparkSession:
    builder = SparkSession.builder.master(master).config("spark.driver.memory", driver_memory)
    if LOCAL.fullmatch(master):  # nobody else is to dial the driver
        builder = builder.config("spark.driver.host", "127.0.0.1").config(
            "spark.driver.bindAddress", "127.0.0.1"
        )
    for name, value in CONFIG.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.shuffle.partitions", str(4 * spark.sparkContext.defaultParallelism))
    spark.dataSource.register(RedisStream)
    return spark
