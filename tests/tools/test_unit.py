"""`make unit`: what fails is run once more, alone (CONTRIBUTING.md)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = """
[tool.pytest.ini_options]
addopts = "--import-mode=importlib -p xdist.plugin"
"""
FAILS_ONCE = """
from pathlib import Path

def test_it():
    mark = Path(__file__).with_suffix(".mark")
    was_run = mark.exists()
    mark.touch()
    assert was_run
"""
PASSES, FAILS = "def test_it(): pass", "def test_it(): assert False"


def unit(folder: Path, *words: str, **tests: str) -> tuple[int, str]:
    """Status and output, in a project with these tests beside one of each kind that computes."""
    (folder / "pyproject.toml").write_text(SETTINGS)
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "unit", folder / "tools")
    for place, text in {
        "protos": PASSES,
        "ring__simulation": PASSES,
        "analytics__spark": PASSES,
        "other": PASSES,
        **tests,
    }.items():
        path = folder / "tests" / place.replace("__", "/") / f"test_{place}.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    whole = folder / "tests" / "benchmarks" / "test_analytics_whole.py"  # with Spark, and elsewhere
    whole.parent.mkdir()
    whole.write_text(PASSES)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "JUNIT"))}
    clean |= {"WORKERS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # the others take seconds to begin
    command = ["tools/unit", sys.executable, *words]
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout


def test_what_passes_alone_is_named(tmp_path: Path) -> None:
    status, printed = unit(tmp_path, late=FAILS_ONCE, protos=FAILS_ONCE, analytics__spark=FAILS_ONCE)
    assert status == 0
    told = printed.split("passed alone, to be mended:\n")
    assert told[1].startswith("  tests/late/test_late.py::test_it\n")
    assert told[2].startswith("  tests/protos/test_protos.py::test_it\n")
    assert told[3].startswith("  tests/analytics/spark/test_analytics__spark.py::test_it\n")


@pytest.mark.parametrize(
    "tests",
    [
        {"late": FAILS_ONCE, "wrong": FAILS},
        {"faults": FAILS_ONCE},
        {"analytics__spark": FAILS},
        {f"late{number}": FAILS_ONCE for number in range(9)},
    ],
    ids=["fails again", "found by chance", "with Spark", "too many"],
)
def test_what_fails_stays_so(tmp_path: Path, tests: dict[str, str]) -> None:
    status, printed = unit(tmp_path, **tests)
    assert status != 0
    assert "failed" in printed or "error" in printed


@pytest.mark.parametrize(
    ("part", "own", "other"), [("first", "other", "protos"), ("rest", "protos", "other")]
)
def test_each_part_runs_without_the_other(tmp_path: Path, part: str, own: str, other: str) -> None:
    """CI runs the part that steps back beside `make e2e`."""
    for name, has_failed in ((other, False), (own, True)):
        folder = tmp_path / name
        folder.mkdir()
        status, printed = unit(folder, part, **{name: FAILS})
        assert (status != 0) is has_failed, printed
