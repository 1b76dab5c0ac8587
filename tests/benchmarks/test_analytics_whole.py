"""Test the whole benchmark of the analytics job at a tiny size. It needs Spark, so it runs alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.analytics import __main__ as command
from benchmarks.analytics import asking, beside, profile, reading, shown
from benchmarks.analytics.findings import findings
from benchmarks.analytics.sessions import session
from benchmarks.kept import write_docs
from benchmarks.machine import describe
from tests.redis_stream.spark.jvm import SHORT_LIVED

# it starts Spark four times
pytestmark = pytest.mark.timeout(1200)
TINY = beside.Looks(1, 0.2, beside.CONDITIONS[1:2])  # the idle class is left out: there the job may never run


@contextmanager
def briefly() -> Iterator[None]:
    """Shorten the measurements, and use one JVM for all numbers of cores."""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())

        @cache
        def only() -> SparkSession:
            return stack.enter_context(session(2))

        @contextmanager
        def shared(_: int) -> Iterator[SparkSession]:
            yield only()

        for part in (reading, profile, asking):
            patch.setattr(part, "session", shared)
        patch.setattr(profile, "LOOP_S", 0.05)
        patch.setattr(beside, "MOST_S", 0.5)
        patch.setattr(command, "describe", partial(describe, watched_s=0.2))
        for name, value in SHORT_LIVED.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of a whole run with 2,000 letters and samples."""
    folder = tmp_path_factory.mktemp("results")
    with open(os.devnull, "w") as nowhere, briefly():
        options = command.parse(["--records", "2000", "--hours", "2", "--results", str(folder)])
        command.run(options, Console(file=nowhere), TINY)
    (path,) = folder.iterdir()
    return path


def test_the_whole_benchmark_runs_to_its_end(whole: Path) -> None:
    found = json.loads(whole.read_text())
    assert found["failed"] == {}, found["failed"]
    assert whole.name == "analytics-2000-2h.json"
    assert (found["rounds"], found["is_full"]) == (1, False)
    assert {run["dead"] for runs in found["job"].values() for run in runs} == {2000}
    assert [each["letters"] for each in found["asked"]["sizes"]][-2:] == [2000, 8000]
    for cores in (each for reads in found["profile"]["reads"].values() for each in reads.values()):
        assert cores.keys() == {"store", "JVM", "Python"}
        assert cores["JVM"] > 0
        assert sum(cores.values()) <= (os.cpu_count() or 1) * 1.2
    assert all(each > 0 for each in found["profile"]["loops"])
    (seen,) = found["edge"].values()
    assert seen["during"]
    assert all(each["both"] > 0 and each["paced"] > 0 for each in (*seen["during"], *seen["without"]))


def test_each_wanted_figure_has_a_verdict(whole: Path) -> None:
    found = json.loads(whole.read_text())
    wanted = findings(found)
    assert {each.measure for each in wanted} == {"reading", "job", "edge"}
    assert {each.verdict for each in wanted} <= {"met", "missed"}
    text = shown.SHOWN.markdown(found)
    assert "| the whole job on two cores, after Spark's start |" in text
    assert shown.SMALL in text
    console = Console(record=True, width=200, file=open(os.devnull, "w"))  # noqa: SIM115
    shown.SHOWN.show(found, console)
    console.file.close()
    assert "The whole job, after Spark's start" in console.export_text()


def test_the_page_is_written_between_its_markers(whole: Path, tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("before\n<!-- analytics:begin -->\n<!-- analytics:end -->\nafter\n")
    assert (
        write_docs(page, whole, command.NAME, shown.SHOWN.markdown)
        == "benchmarks.md shows analytics-2000-2h.json"
    )
    assert shown.SHOWN.markdown(json.loads(whole.read_text())) in page.read_text()
    with pytest.raises(ValueError, match="not there yet"):
        write_docs(page, tmp_path / "none.json", command.NAME, shown.SHOWN.markdown)
