"""Run the commands of docs/troubleshooting.md in order beside a `penstock up`, and compare their output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.docs.bench import BLOCK, NO_CONSOLE, split
from tests.docs.session import Session
from tests.sysv.namespace import own_machine
from tests.tmq.process import ROOT

PAGE = "docs/troubleshooting.md"


@pytest.fixture
def session() -> Iterator[Session]:
    """Yield a session in a network of its own, where all of the page's ports are free."""
    with own_machine(), TemporaryDirectory(prefix="p") as folder:
        session = Session(Path(folder), "tutorials")
        del session.environment[NO_CONSOLE]
        yield session
        session.clear()


def test_commands_print_the_output_of_the_page(session: Session) -> None:
    session.start_up("penstock up")
    for block in BLOCK.findall((ROOT / PAGE).read_text()):
        for command in split(block):
            if command.line in ("penstock up", "penstock serve tmq"):
                session.must_show(command)
            else:
                session.follow(command)
    session.press_ctrl_c()


def test_page_has_at_least_thirty_symptoms() -> None:
    symptoms = [line for line in (ROOT / PAGE).read_text().splitlines() if line.startswith("### ")]
    assert len(symptoms) == len(set(symptoms)) >= 30
