"""One Spark for all tests of this folder, with two tasks at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.analytics.session import CONFIG
from tests.analytics.spark.entries import Entries
from tests.servers import PROGRAMS, Server
from tests.stores import chance

__all__ = ["chance"]

ROOT = Path(__file__).parents[3]
PLACES = (ROOT, ROOT / "operator", ROOT / "services/analytics/plugin")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """It knows of our data source only by the folder in which Spark looks for such."""
    before = dict(os.environ)
    os.environ |= {
        "PYTHONPATH": os.pathsep.join(map(str, PLACES)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        **CONFIG,  # as the job has them
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        "spark.sql.streaming.stopTimeout": "60s",
    }
    builder = SparkSession.builder.master("local[2,3]").appName("tests")  # a task may fail twice
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # which ends the JVM
    gateway.proc.wait(60)
    os.environ.clear()
    os.environ |= before


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that leave it whole."""
    server = Server(next(iter(PROGRAMS)), tmp_path_factory.mktemp("store")).start()
    yield server
    server.end()


@pytest.fixture
def store(running: Server) -> Entries:
    """An empty catalogue."""
    running.clear()
    return Entries(running)
