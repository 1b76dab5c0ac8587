"""One Spark session for all tests of this folder, with the settings of the job."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from services.analytics.session import CONFIG
from tests.redis_stream.entries import Entries
from tests.redis_stream.spark.session import start, stop
from tests.servers import Server


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    yield start(tmp_path_factory.mktemp("spark"), CONFIG)
    stop()


@pytest.fixture
def store(running: Server) -> Entries:
    """A store with an empty catalogue."""
    running.clear()
    return Entries(running)
