"""Test the whole benchmark of the analytics job at a tiny size. It needs Spark, so it runs alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.analytics import __main__ as command
from benchmarks.analytics import gold, reading, shown
from benchmarks.analytics.findings import findings
from benchmarks.analytics.sessions import session
from benchmarks.kept import write_docs
from benchmarks.machine import describe
from tests.redis_stream.spark.jvm import SHORT_LIVED

# it starts Spark four times
pytestmark = pytest.mark.timeout(1200)
RECORDS = 700


@contextmanager
def briefly() -> Iterator[None]:
    """Shorten the measurements, and use one JVM of this process for all numbers of cores."""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())

        @cache
        def only() -> SparkSession:
            return stack.enter_context(session(2))

        @contextmanager
        def shared(_: int) -> Iterator[SparkSession]:
            yield only()

        for part in (reading, gold):
            patch.setattr(part, "session", shared)
        patch.setattr(gold, "TIMES", 1)
        patch.setattr(command, "describe", partial(describe, watched_s=0.2))
        for name, value in SHORT_LIVED.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of a whole run with 700 letters and samples."""
    folder = tmp_path_factory.mktemp("results")
    with open(os.devnull, "w") as nowhere, briefly():
        options = command.parse(["--records", str(RECORDS), "--hours", "2", "--results", str(folder)])
        command.run(options, Console(file=nowhere))
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def found(whole: Path) -> dict[str, Any]:
    return dict(json.loads(whole.read_text()))


def test_the_whole_benchmark_runs_to_its_end(whole: Path, found: dict[str, Any]) -> None:
    assert found["failed"] == {}, found["failed"]
    assert whole.name == "analytics-700-2h.json"
    assert not found["is_full"]
    assert found["reading"].keys() == {"dead", "samples"}
    assert all(rate > 0 for each in found["reading"].values() for rate in each.values())


def test_runs_read_every_record_once(found: dict[str, Any]) -> None:
    read = {name: (run["dead"], run["samples"]) for name, run in found["job"].items()}
    assert read == {
        "all records": (RECORDS, RECORDS),
        "nothing new": (0, 0),
        "2,000 new letters": (2000, 0),
    }
    assert {name: run["dead"] for name, run in found["cores"].items()} == {"1": RECORDS, "2": RECORDS}
    first = found["job"]["all records"]
    assert first == found["cores"]["2"]
    assert first["steps"].keys() >= {"ingest_dead", "ingest_samples", "gold", "report"}
    assert 0 < first["spark_s"] < first["seconds"]
    memory = first["memory_mib"]
    assert 100 < memory["java"] < memory["all"] <= memory["java"] + memory["python"]


def test_each_engine_has_the_rows_of_gold(found: dict[str, Any]) -> None:
    """Check that the tables were compared: the run fails if an answer differs from the gold table."""
    assert found["gold"]["engines"].keys() == {"deaths", "traffic, sums"}
    for seconds in found["gold"]["engines"].values():
        assert seconds.keys() == {"Spark", "DuckDB", "Polars"}
    rows = found["gold"]["rows"]
    assert all(rows[name] for name in ("traffic", "depths", "edges", "deaths", "origins", "failures"))


def test_each_goal_has_a_verdict(found: dict[str, Any]) -> None:
    wanted = findings(found)
    assert {each.measure for each in wanted} == {"reading", "job", "cores", "gold"}
    assert {each.verdict for each in wanted} <= {"met", "missed"}
    text = shown.SHOWN.markdown(found)
    assert "| the whole job on two cores, after Spark's start |" in text
    assert shown.SMALL in text
    console = Console(record=True, width=200, file=open(os.devnull, "w"))  # noqa: SIM115
    shown.SHOWN.show(found, console)
    console.file.close()
    assert "The whole job, and the runs after it" in console.export_text()


def test_the_page_is_written_between_its_markers(whole: Path, found: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("before\n<!-- analytics:begin -->\n<!-- analytics:end -->\nafter\n")
    said = write_docs(page, whole, command.NAME, shown.SHOWN.markdown)
    assert said == "benchmarks.md shows analytics-700-2h.json"
    assert shown.SHOWN.markdown(found) in page.read_text()
    with pytest.raises(ValueError, match="not there yet"):
        write_docs(page, tmp_path / "none.json", command.NAME, shown.SHOWN.markdown)
