"""Compare reading alone: `redis_stream` into Spark, which drops the rows, and a plain loop of redis-py's XRANGE."""

from __future__ import annotations

import time
from collections.abc import Sequence

import redis
from pyspark.sql import Observation, SparkSession
from pyspark.sql.functions import count, lit

from benchmarks.analytics.bench import Bench
from benchmarks.analytics.sessions import session
from services.redis_stream.schema import Kind

COUNT = 10_000  # entries of one XRANGE of the loop
LOOP, ONE, TWO = "loop", "one core", "two cores"
CORES = {ONE: 1, TWO: 2}
WARM_UP = 20  # the warm-up read has this part of the day


def measure(bench: Bench) -> dict[str, dict[str, float]]:
    """Return the entries a second by kind and by reader."""
    day = bench.day
    kinds = ((Kind.DEAD, bench.dead, day.letters), (Kind.SAMPLES, [bench.samples], day.samples))
    found: dict[str, dict[str, float]] = {}
    for kind, streams, number in kinds:
        bench.say(f"reading {kind} in a loop")
        found[kind] = {LOOP: loop(bench.url, streams, number)}
    for name, cores in CORES.items():
        with session(cores) as spark:
            for kind, _, number in kinds:
                bench.say(f"reading {kind} by Spark, {name}")
                rows_of(spark, bench.url, kind, end=f"{day.begin_ms + day.ms // WARM_UP}-0")
                found[kind][name] = by_spark(spark, bench.url, kind, number)
    return found


def loop(url: str, keys: Sequence[str], number: int) -> float:
    """Return the entries a second of one process that fetches pages and ignores their content."""
    found = 0
    began = time.monotonic()
    with redis.Redis.from_url(url) as server:
        for key in keys:
            last = "-"
            while page := server.xrange(key, last, count=COUNT):
                found += len(page)
                last = b"(" + page[-1][0]
    took = time.monotonic() - began
    _are_all(found, number, "the loop")
    return found / took


def by_spark(spark: SparkSession, url: str, kind: Kind, number: int) -> float:
    """Return the rows a second. Raises OSError if a row is missing or unreadable."""
    began = time.monotonic()
    rows, problems = rows_of(spark, url, kind)
    took = time.monotonic() - began
    _are_all(rows, number, "Spark")
    if problems:
        raise OSError(f"{problems} of {rows} rows could not be read")
    return rows / took


def rows_of(spark: SparkSession, url: str, kind: Kind, **options: str) -> tuple[int, int]:
    """Read all entries and return the number of rows, and of rows with a problem."""
    rows = spark.read.format("redis_stream").options(url=url, kind=str(kind), **options).load()
    seen = Observation()
    counted = rows.observe(seen, count(lit(1)).alias("rows"), count("problem").alias("problems"))
    counted.write.format("noop").mode("overwrite").save()
    return seen.get["rows"], seen.get["problems"]


def _are_all(found: int, number: int, reader: str) -> None:
    if found != number:
        raise OSError(f"{reader} has read {found} of {number} entries")
