"""Spark sessions in the benchmark's own process, started as the job does; the JVM ends with the session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from services.analytics.spark.session import start

DRIVER_MEMORY = "1g"  # as in the job
PATIENCE_S = 60.0


@contextmanager
def session(cores: int) -> Iterator[SparkSession]:
    """Run a session on `local[cores]` with a JVM of its own, so that sessions share neither memory nor threads.

    Raises OSError in place of Spark's errors, which cannot be shown without the JVM.
    """
    spark = start(f"local[{cores}]", DRIVER_MEMORY)
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - PySpark offers no way to end Java
    try:
        yield spark
    except (PySparkException, Py4JError) as failure:
        raise OSError(f"Spark: {failure}") from None
    finally:
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # which ends the JVM
        gateway.proc.wait(PATIENCE_S)
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - PySpark offers no way to end Java
