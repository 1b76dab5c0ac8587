"""Read a server with Spark."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.redis_stream.streams import KEY
from tests.servers import Server


def load(spark: SparkSession, server: Server | str, **options: Any) -> DataFrame:
    """Return a lazy data frame; of the stream `s` unless a kind is given."""
    url = server if isinstance(server, str) else server.url
    told = {"url": url, "connectTimeoutS": "5", **({} if "kind" in options else {"stream": KEY}), **options}
    return (
        spark.read.format("redis_stream").options(**{name: str(value) for name, value in told.items()}).load()
    )


def ids(frame: DataFrame) -> list[str]:
    return sorted(
        (row.id for row in frame.select("id").collect()), key=lambda one: int(one.partition("-")[0])
    )
