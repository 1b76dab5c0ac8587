"""Test that Spark writes and reads Delta tables in a bucket, set up by the environment of other S3 clients."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import deltalake

from tests.analytics.objects import BUCKET, objects
from tests.redis_stream.spark.jvm import SHORT_LIVED

ROOT = Path(__file__).parents[3]
# A process of its own, as Java reads its environment once. The stream's checkpoint needs renames.
WRITE_AND_FOLLOW = """
import os, sys
from pyspark.sql import SparkSession
from services.analytics.s3 import s3_settings

source, target, checkpoint = sys.argv[1:]
settings = {
    "spark.ui.enabled": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    **s3_settings(os.environ),
}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
rows = spark.range(100).selectExpr("id", "'2026-07-01' AS day")
for _ in range(2):
    rows.write.format("delta").mode("append").partitionBy("day").save(source)
stream = spark.readStream.format("delta").load(source).writeStream.format("delta")
stream = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
stream.start(target).awaitTermination()
print(spark.read.format("delta").load(target).count())
spark.stop()
"""


def test_delta_tables_and_a_stream_in_a_bucket(tmp_path: Path) -> None:
    with objects(tmp_path) as bucket:
        environment = {**os.environ, **SHORT_LIVED, **bucket, "SPARK_LOCAL_IP": "127.0.0.1"}
        urls = [f"s3a://{BUCKET}/deep/{name}" for name in ("source", "target", "_checkpoints/target")]
        done = subprocess.run(
            [sys.executable, "-c", WRITE_AND_FOLLOW, *urls],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.split() == ["200"]
        options = {**bucket, "AWS_ALLOW_HTTP": "true"}
        for name in ("source", "target"):  # another engine reads the same
            table = deltalake.DeltaTable(f"s3://{BUCKET}/deep/{name}", storage_options=options)
            assert table.to_pyarrow_table().num_rows == 200
