"""Start the Spark session of a folder of tests, with two tasks at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tests.redis_stream.spark.jvm import SHORT_LIVED

ROOT = Path(__file__).parents[3]
PLACES = (ROOT, ROOT / "operator", ROOT / "services/redis_stream/plugin")
_open: list[tuple[SparkSession, Any, dict[str, str]]] = []  # with its gateway, and the environment before it


def start(folder: Path, settings: Mapping[str, str]) -> SparkSession:
    """Start a session that finds the data source only by the folder in which Spark looks for it.

    It ends the session of another folder of tests: Spark allows one in a process.
    """
    stop()
    before = dict(os.environ)
    os.environ |= SHORT_LIVED | {
        "PYTHONPATH": os.pathsep.join(map(str, PLACES)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    own = {
        "spark.sql.shuffle.partitions": "2",
        **settings,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        "spark.sql.streaming.stopTimeout": "60s",
    }
    conf = SparkConf(loadDefaults=False).setMaster("local[2,3]")  # a task may fail twice
    conf.setAll(list(own.items()))
    gateway = launch_gateway(conf)
    context = SparkContext(conf=conf, gateway=gateway)
    context.setLogLevel("OFF")
    session = SparkSession(context)
    _open.append((session, gateway, before))
    return session


def stop() -> None:
    """Stop the open session, if any."""
    while _open:
        session, gateway, before = _open.pop()
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # ends the JVM
        gateway.proc.wait(60)
        SparkContext._gateway = SparkContext._jvm = None  # so that another one can start  # noqa: SLF001
        os.environ.clear()
        os.environ |= before
