"""Read with Spark while the store is killed; failovers and moved slots are in test_reading_faults.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.redis_stream.spark.loading import ids, load
from tests.redis_stream.streams import add
from tests.servers import Server, eventually

ENTRIES = [(f"{number}-0", 2000) for number in range(1, 12_001)]  # more than is read ahead
LONG_S = 240  # for what takes seconds on an idle machine
ROWS = 6000  # rows of a partition; two are read at a time


def read_while(spark: SparkSession, url: str, folder: Path, disturb: Callable[[], None]) -> list[str]:
    """Read, and call `disturb` once a task has begun to read and waits; the task continues afterwards."""
    begun, done = folder / "begun", folder / "done"

    def wait(batches):  # type: ignore[no-untyped-def]
        for made in batches:
            begun.touch()
            while not done.exists():
                time.sleep(0.01)
            yield made

    frame = load(spark, url, rowsPerPartition=ROWS, pageRows=50, connectTimeoutS=60)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: ids(frame.select("id").mapInArrow(wait, "id string")))
        eventually(begun.exists, LONG_S)
        try:
            disturb()
        finally:
            done.touch()
        return found.result(LONG_S)


@pytest.fixture(autouse=True)
def small_batches(spark: SparkSession) -> Iterator[None]:
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, "100")
    yield
    spark.conf.set(name, before)


def test_a_server_that_is_killed_and_starts_again(
    spark: SparkSession, own_server: Server, tmp_path: Path
) -> None:
    expected = add(own_server, ENTRIES)

    def restart() -> None:
        own_server.kill9()
        own_server.restart()

    assert read_while(spark, own_server.url, tmp_path, restart) == expected
