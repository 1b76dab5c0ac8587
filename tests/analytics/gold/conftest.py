"""One Spark session with Delta for all tests of this folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tests.redis_stream.spark.jvm import SHORT_LIVED

ROOT = Path(__file__).parents[3]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    # a few rows: fewer tasks and jobs, and no compiled code, which takes longer than to run
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    before = dict(os.environ)
    os.environ |= SHORT_LIVED | {
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    folder = tmp_path_factory.mktemp("spark")
    conf = SparkConf(loadDefaults=False).setMaster("local[2]")
    places = {"spark.local.dir": str(folder), "spark.sql.warehouse.dir": str(folder / "warehouse")}
    conf.setAll([*SETTINGS.items(), *places.items()])
    gateway = launch_gateway(conf)
    context = SparkContext(conf=conf, gateway=gateway)
    context.setLogLevel("OFF")
    session = SparkSession(context)
    yield session
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # ends the JVM
    gateway.proc.wait(60)
    os.environ.clear()
    os.environ |= before
