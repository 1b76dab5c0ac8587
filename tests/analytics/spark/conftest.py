"""One Spark session for all tests of this folder, with two tasks at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from services.analytics.session import CONFIG
from tests.analytics.spark.entries import Entries
from tests.analytics.spark.jvm import SHORT_LIVED
from tests.servers import Server

ROOT = Path(__file__).parents[3]
PLACES = (ROOT, ROOT / "operator", ROOT / "services/redis_stream/plugin")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session that finds the data source only by the folder in which Spark looks for it."""
    before = dict(os.environ)
    os.environ |= SHORT_LIVED | {
        "PYTHONPATH": os.pathsep.join(map(str, PLACES)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        **CONFIG,  # as in the job
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        "spark.sql.streaming.stopTimeout": "60s",
    }
    conf = SparkConf(loadDefaults=False).setMaster("local[2,3]")  # a task may fail twice
    conf.setAll(list(settings.items()))
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


@pytest.fixture
def store(running: Server) -> Entries:
    """A store with an empty catalogue."""
    running.clear()
    return Entries(running)
