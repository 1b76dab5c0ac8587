"""Gold tables of some rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import write_deltalake

from services.analytics import delta
from services.analytics.tables import GOLD
from tests.analytics.report.rows import Rows, arrow, of_hour

Write = Callable[[Rows], str]


@pytest.fixture
def gold(tmp_path: Path) -> Write:
    """Return a function that appends rows to the gold tables and returns the output."""

    def write(rows: Rows) -> str:
        output = tmp_path / "it's an output"
        delta.create(str(output), GOLD)
        for table in GOLD:
            found = arrow(table, [row for hour in rows for row in of_hour(rows, hour, table)])
            columns = [each.name for each in table.columns]
            write_deltalake(output / "gold" / table.name, found.select(columns), mode="append")
        return str(output)

    return write
