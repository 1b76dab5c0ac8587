"""Test that `make unit` runs failed tests once more, alone (CONTRIBUTING.md)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

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
    """Run `make unit` in a project with these tests and one of each CPU-bound kind; return status and output."""
    (folder / "pyproject.toml").write_text(SETTINGS)
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "unit", folder / "tools")
    for place, text in {
        "protos": PASSES,
        "ring__simulation": PASSES,
        "redis_stream__spark": PASSES,
        "analytics__gold": PASSES,
        "analytics__spark": PASSES,
        "other": PASSES,
        **tests,
    }.items():
        path = folder / "tests" / place.replace("__", "/") / f"test_{place}.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    whole = folder / "tests" / "benchmarks" / "test_analytics_whole.py"  # tests with Spark in another folder
    whole.parent.mkdir()
    whole.write_text(PASSES)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "JUNIT"))}
    clean |= {"WORKERS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other plugins take seconds to load
    command = ["tools/unit", sys.executable, *words]
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout


def test_tests_that_pass_alone_are_named(tmp_path: Path) -> None:
    status, printed = unit(tmp_path, late=FAILS_ONCE, protos=FAILS_ONCE, analytics__spark=FAILS_ONCE)
    assert status == 0
    sections = printed.split("passed alone, to be fixed:\n")
    assert sections[1].startswith("  tests/late/test_late.py::test_it\n")
    assert sections[2].startswith("  tests/protos/test_protos.py::test_it\n")
    assert sections[3].startswith("  tests/analytics/spark/test_analytics__spark.py::test_it\n")


def test_tests_that_fail_again_stay_failed(tmp_path: Path) -> None:
    status, printed = unit(tmp_path, late=FAILS_ONCE, wrong=FAILS, analytics__spark=FAILS)
    assert status != 0
    assert printed.count("FAILED tests/wrong/test_wrong.py::test_it") == 2
    assert printed.count("FAILED tests/analytics/spark/test_analytics__spark.py::test_it") == 2
    assert "to be fixed" not in printed


def test_many_failures_and_those_found_by_chance_are_not_run_again(tmp_path: Path) -> None:
    many = {f"protos__late{number}": FAILS_ONCE for number in range(9)}
    status, printed = unit(tmp_path, faults=FAILS_ONCE, **many)
    assert status != 0
    sections = printed.split("failed, and not run again (more than 8 tests, or one of tests/faults):\n")
    assert sections[1].startswith("  tests/faults/test_faults.py::test_it\n")
    assert sections[2].count("tests/protos/late") == 9
    assert "to be fixed" not in printed
