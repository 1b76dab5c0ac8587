"""Gold tables of some rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.analytics.report.rows import Rows, write

Write = Callable[[Rows], str]


@pytest.fixture
def gold(tmp_path: Path) -> Write:
    """Return a function that appends rows to the gold tables and returns the output."""
    output = tmp_path / "it's an output"

    def append(rows: Rows) -> str:
        write(rows, output)
        return str(output)

    return append
