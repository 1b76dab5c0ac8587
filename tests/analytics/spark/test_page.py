"""Run the first examples of docs/analytics.md and of the Python API's page as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.redis_stream.spark.test_source import set_up
from tests.redis_stream.streams import LETTER, add
from tests.servers import Server

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "analytics.md").read_text()
API = (DOCS / "reference" / "api" / "redis_stream.md").read_text()
USUAL = "redis://127.0.0.1:6379"


def block(language: str, server: Server, page: str = PAGE) -> str:
    """Return the first code block of the language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)[:1]
    return str(text).replace(USUAL, server.url)


def test_they_say_what_died(spark: SparkSession, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    keys = set_up(server, "orders")
    add(server, [("1-0", LETTER), ("2-0", LETTER)], keys["orders"])
    exec(block("python", server))
    assert "|orders|refused|    2|" in capsys.readouterr().out
    create, select = (part for part in block("sql", server).split(";\n") if part.strip())
    session = spark.newSession()  # other tests have views of these names
    session.sql(create)
    (row,) = session.sql(select).collect()
    assert tuple(row)[:3] == ("orders", "refused", 2)


def test_the_example_of_the_api_reference_runs(
    spark: SparkSession, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = set_up(server, "orders")
    add(server, [("1-0", LETTER)], keys["orders"])
    exec(block("python", server, API))
    assert "Row(queue='orders', reason='refused', count=1)" in capsys.readouterr().out
