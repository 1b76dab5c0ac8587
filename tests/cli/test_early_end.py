"""Test that SIGTERM during startup ends the process, which has nothing to drain yet (docs/images.md, Guarantees).

The first process of a container gets no signal without a handler: tests/images/test_edge.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.__main__ import SERVING, TERMINATED
from services.cli.main import MODULES
from services.cli.terminal.exits import Exit
from tests.early import sigterm_during_import
from tests.program import ROOT


@pytest.mark.parametrize(("words", "status"), [("serve tmq", 0), ("get orders", 143), ("", 143)])
def test_sigterm_ends_a_command_during_imports(words: str, status: int, tmp_path: Path) -> None:
    assert sigterm_during_import("click", ["services.cli", *words.split()], tmp_path) == status


def test_entry_point_is_the_tested_module() -> None:
    assert 'penstock = "services.cli.__main__:main"' in (ROOT / "pyproject.toml").read_text()


def test_exit_statuses_match_the_table() -> None:
    assert TERMINATED == Exit.TERMINATED
    assert set(SERVING) <= MODULES.keys()
