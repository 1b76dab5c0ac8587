"""SIGTERM while a process starts ends it: nothing is there yet to drain (docs/images.md, Guarantees).

As the first process of a container it would be sent none, if nothing handled it: tests/images/test_edge.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.__main__ import SERVING, TERMINATED
from services.cli.main import MODULES
from services.cli.terminal.exits import Exit
from tests.early import told_to_end_while
from tests.program import ROOT


@pytest.mark.parametrize(("words", "status"), [("serve tmq", 0), ("get orders", 143), ("", 143)])
def test_a_command_ends_while_it_is_imported(words: str, status: int, tmp_path: Path) -> None:
    assert told_to_end_while("click", ["services.cli", *words.split()], tmp_path) == status


def test_the_program_is_that_module() -> None:
    assert 'penstock = "services.cli.__main__:main"' in (ROOT / "pyproject.toml").read_text()


def test_its_names_for_statuses_are_those_of_the_table() -> None:
    assert TERMINATED == Exit.TERMINATED
    assert set(SERVING) <= MODULES.keys()
