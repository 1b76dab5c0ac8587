"""A Spark session with Delta, and gold tables in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.analytics.tables import GOLD
from tests.analytics.report.rows import Rows, arrow, of_hour

CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
Write = Callable[[Rows], str]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]")
    for name, value in CONF.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def gold(spark: SparkSession, tmp_path: Path) -> Write:
    """Return a function that writes the gold tables of some rows and returns the output."""

    def write(rows: Rows) -> str:
        for table in GOLD:
            found = arrow(table, [row for hour in rows for row in of_hour(rows, hour, table)])
            frame = spark.createDataFrame(found.select([each.name for each in table.columns]), table.schema())
            path = str(tmp_path / "out" / "gold" / table.name)
            frame.coalesce(1).write.format("delta").mode("append").partitionBy("day").save(path)
        return str(tmp_path / "out")

    return write
