"""SIGTERM while the operator starts ends it: nothing is there yet to let go (docs/images.md, What they promise)."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.early import told_to_end_while


def test_the_operator_ends_while_it_is_imported(tmp_path: Path) -> None:
    assert told_to_end_while("uvloop", ["penstock_operator"], tmp_path) == 0


def test_what_is_done_before_an_uninstall_is_not_cut_short(tmp_path: Path) -> None:
    """Only `uninstall` is told so, by its chart: it lets go of what would hang, and ends in time by itself."""
    words = ["uninstall", "--release", "r", "--namespace", "n", "--deployment", "d"]
    assert told_to_end_while("uvloop", ["penstock_operator", *words], tmp_path) == -signal.SIGTERM
