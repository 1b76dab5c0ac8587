"""A Spark session with the settings of the job for all tests of this folder, and servers without an event loop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from services.analytics.spark.session import CONFIG, LOCAL_FILES
from tests.redis_stream.conftest import own_server, running, server
from tests.redis_stream.spark.session import start, stop
from tests.stores import chance

__all__ = ["chance", "own_server", "running", "server"]

# a few rows: fewer tasks and jobs, and no compiled code, which takes longer than to run
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.snapshotPartitions": "1",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    yield start(tmp_path_factory.mktemp("spark"), CONFIG | LOCAL_FILES | SMALL)
    stop()
