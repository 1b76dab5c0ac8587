"""Replace rows of Delta tables with Spark, several tables at a time, beside other jobs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from services.analytics.tables import Table

THREADS = 4  # statements at a time: most of their time is latency
TRIES = 5  # of a statement that collides with another job
PAUSE_S = 0.5  # before the second try; doubled before each further one
COLLISIONS = ("DELTA_CONCURRENT_", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")


def replace_rows(rows: Callable[[], DataFrame], place: str, where: str) -> None:
    """Replace the rows of a table that satisfy a condition, in one commit.

    After a collision with another job the rows are made again. Raises PySparkException.
    """
    for number in range(TRIES):
        try:
            rows().write.format("delta").mode("overwrite").option("replaceWhere", where).save(place)
            return
        except (PySparkException, Py4JJavaError) as error:
            if number == TRIES - 1 or not any(each in str(error) for each in COLLISIONS):
                raise
            # two jobs that collided do not meet again
            time.sleep(PAUSE_S * 2**number * random.uniform(0.5, 1.5))


def in_threads(tables: Iterable[Table], work: Callable[[Table], None]) -> None:
    """Do the work for some tables at a time; the first error is raised when all have ended."""
    with ThreadPoolExecutor(THREADS) as threads:
        for each in [threads.submit(work, table) for table in tables]:
            each.result()
