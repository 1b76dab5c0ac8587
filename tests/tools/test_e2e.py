"""Test what `make e2e` selects for an existing cluster (CONTRIBUTING.md, End to end). These tests need no cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.images import given
from tests.program import ROOT


@pytest.mark.parametrize("place", ["registry.test/team", "registry.test/team/"])
def test_images_are_those_of_the_registry(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("PENSTOCK_E2E_IMAGES", place)
    monkeypatch.setenv("PENSTOCK_E2E_TAG", "7")
    assert given().of("edge") == "registry.test/team/penstock-edge:7"


def test_tests_of_a_local_node_are_deselected(tmp_path: Path) -> None:
    """Check that tests of a local node are deselected: a skip would need a reason in .ci/skips.txt for every run."""
    options = ["--setup-only", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 't'}", "-rs"]
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "nowhere")}
    environment.pop("PENSTOCK_E2E_IMAGES", None)  # each test's first fixture reports that it is missing
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/e2e", *options],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    number = re.search(r"^(\d+) tests of a node of our own are left out", done.stdout, re.MULTILINE)
    assert number, done.stdout
    assert f"{number[1]} deselected" in done.stdout
    assert "skipped" not in done.stdout
    assert "set PENSTOCK_E2E_IMAGES" in done.stdout
    for name in ("test_leftovers.py", "test_possible.py", "drained_and_comes_back"):
        assert name not in done.stdout
    assert "test_the_readme_installs_a_release" in done.stdout
