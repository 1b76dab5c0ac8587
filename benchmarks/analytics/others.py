"""One question to the archive's Parquet, asked of Spark, DuckDB and pandas: what died, by hour, queue and reason.

Number, octets, and the median and 99th percentile of the time to death; and the fifty failures that came most often.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
from pyspark.sql import SparkSession

from services.analytics.session import start

DRIVER_MEMORY = "2g"
COLUMNS = ["queue", "reason", "died", "enqueued", "size", "fingerprint"]
TOP = 50
GROUPS = """
select date_trunc('hour', died) as hour, queue, reason, count(*) as number, sum(size) as octets,
  {percentile}({age}, 0.5) as half, {percentile}({age}, 0.99) as most
from {rows} group by 1, 2, 3
"""
FAILURES = f"""
select fingerprint, count(*) as number from {{rows}} group by 1 order by number desc, fingerprint limit {TOP}
"""
Answer = tuple[int, int, str]  # groups, letters in them, the first of the failures


def by_duckdb(files: list[Path], cores: int) -> Answer:
    with duckdb.connect(config={"threads": cores}) as connection:
        words = {"rows": f"read_parquet({[str(each) for each in files]})", "percentile": "quantile_cont"}
        groups = connection.sql(GROUPS.format(**words, age="epoch_us(died) - epoch_us(enqueued)")).fetchall()
        failures = connection.sql(FAILURES.format(**words)).fetchall()
    return len(groups), sum(each[3] for each in groups), failures[0][0]


def by_pandas(files: list[Path]) -> Answer:
    rows = pd.read_parquet([str(each) for each in files], columns=COLUMNS)
    rows["hour"] = rows["died"].dt.floor("h")
    rows["age"] = (rows["died"] - rows["enqueued"]).dt.total_seconds()
    by = rows.groupby(["hour", "queue", "reason"], observed=True)
    groups = by.agg(number=("size", "size"), octets=("size", "sum"))
    groups = groups.join(by["age"].quantile([0.5, 0.99]).unstack())
    failures = rows.groupby("fingerprint").size().sort_values(ascending=False).head(TOP)
    best = failures[failures == failures.iloc[0]].index.min()
    return len(groups), int(groups["number"].sum()), str(best)


def by_spark(spark: SparkSession, files: list[Path]) -> Answer:
    spark.read.parquet(*map(str, files)).createOrReplaceTempView("letters")
    words = {"rows": "letters", "percentile": "percentile"}
    groups = spark.sql(GROUPS.format(**words, age="unix_micros(died) - unix_micros(enqueued)")).collect()
    failures = spark.sql(FAILURES.format(**words)).collect()
    return len(groups), sum(each["number"] for each in groups), failures[0]["fingerprint"]


def seconds(files: list[Path], cores: int, rounds: int) -> dict[str, list[float]]:
    """Of each, every round; a first one of all is not counted. Raises OSError if they do not answer alike."""
    spark = start(f"local[{cores}]", DRIVER_MEMORY)
    asked: dict[str, Callable[[], Answer]] = {
        "Spark": lambda: by_spark(spark, files),
        "DuckDB": lambda: by_duckdb(files, cores),
        "pandas": lambda: by_pandas(files),
    }
    found: dict[str, list[float]] = {name: [] for name in asked}
    try:
        for number in range(rounds + 1):
            answers: dict[str, Any] = {}
            for name, ask in asked.items():
                began = time.monotonic()
                answers[name] = ask()
                if number:
                    found[name].append(time.monotonic() - began)
            if len(set(answers.values())) != 1:
                raise OSError(f"they do not answer alike: {answers}")
    finally:
        spark.stop()
    return found
