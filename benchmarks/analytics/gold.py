"""Measure all gold tables of the day, computed from bronze, and some of them beside DuckDB and Polars."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.analytics.bench import TWO, Bench
from benchmarks.analytics.engines import QUESTIONS, Question, check
from benchmarks.analytics.sessions import session
from services.analytics import delta
from services.analytics.gold.rewrite import Scope, rewrite
from services.analytics.tables import ALL, BRONZE, GOLD
from services.redis_stream.schema import Kind

TIMES = 3  # that each engine is asked


def measure(bench: Bench) -> dict[str, Any]:
    """Return the seconds of all tables, their rows, and the seconds of each engine by question.

    Raises OSError if an answer of an engine, or of the job's runs, is not that of these tables.
    """
    bench.first()
    bench.say("all gold tables of the day")
    output = bench.output("gold")
    (output / "bronze").symlink_to(bench.output("first") / "bronze")
    delta.create(str(output), ALL)
    with session(TWO) as spark:
        began = time.monotonic()
        rewrite(lambda: spark, str(output), _hours(output), Scope(int(time.time() * 1000)))
        found: dict[str, Any] = {"seconds": time.monotonic() - began, "rows": _rows(output), "engines": {}}
        for name, question in QUESTIONS.items():
            bench.say(f"{name}, by each engine")
            check(question.gold(bench.output("first")), question.gold(output), f"{name} by the job")
            found["engines"][name] = _asked(spark, question, output)
    return found


def _hours(output: Path) -> dict[Kind, set[str]]:
    return {
        kind: {f"{each['day']}T{each['hour']}" for each in delta.opened(str(output), table).partitions()}
        for kind, table in BRONZE.items()
    }


def _rows(output: Path) -> dict[str, int]:
    return {table.name: delta.opened(str(output), table).to_pyarrow_dataset().count_rows() for table in GOLD}


def _asked(spark: SparkSession, question: Question, output: Path) -> dict[str, list[float]]:
    engines = {
        "Spark": lambda: question.by_spark(spark, output),
        "DuckDB": lambda: question.by_duckdb(output),
        "Polars": lambda: question.by_polars(output),
    }
    gold, found = question.gold(output), dict[str, list[float]]()
    for name, answer in engines.items():
        for _ in range(TIMES):
            began = time.monotonic()
            rows = answer()
            found.setdefault(name, []).append(time.monotonic() - began)
            check(rows, gold, f"{question.table.name} by {name}")
    return found
