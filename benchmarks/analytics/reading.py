"""Reading alone: `redis_stream` into Spark, which throws the rows away, beside a plain loop of redis-py's XRANGE."""

from __future__ import annotations

import time

import redis
from pyspark.sql import SparkSession

from services.analytics.schema import Kind
from services.analytics.session import start

COUNT = 10_000  # entries of one XRANGE of the loop
DRIVER_MEMORY = "1g"


def loop(url: str, keys: list[str]) -> float:
    """Entries a second of one process that asks for page after page and looks at nothing."""
    found = 0
    began = time.monotonic()
    with redis.Redis.from_url(url) as server:
        for key in keys:
            last = "-"
            while page := server.xrange(key, last, count=COUNT):
                found += len(page)
                last = b"(" + page[-1][0]
    return found / (time.monotonic() - began)


def by_spark(url: str, cores: int, kind: Kind, number: int, rounds: int) -> list[float]:
    """Rows a second of each round, of so many rows; after a round that is not counted."""
    spark = start(f"local[{cores}]", DRIVER_MEMORY)
    try:
        return [number / _seconds(spark, url, kind) for _ in range(rounds + 1)][1:]
    finally:
        spark.stop()


def _seconds(spark: SparkSession, url: str, kind: Kind) -> float:
    rows = spark.read.format("redis_stream").option("url", url).option("kind", str(kind)).load()
    began = time.monotonic()
    rows.write.format("noop").mode("overwrite").save()
    return time.monotonic() - began
