"""Check README.md, "Try it": the commands after `make up` print what the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.docs.bench import NO_CONSOLE, commands
from tests.docs.session import Session, alike
from tests.sysv.namespace import own_machine
from tests.tmq.process import ROOT

SECTION = (ROOT / "README.md").read_text().partition("\n## Try it\n")[2].partition("\n## ")[0]
UP = re.compile(r"^```\n(penstock \d.*?)^```", re.M | re.S)
PROGRAM = re.compile(r"^```python\n(.*?)^```\n\n```\n(.*?)^```", re.M | re.S)


@pytest.fixture
def session() -> Iterator[Session]:
    """Yield a session in a network of its own, where all of the page's ports are free."""
    with own_machine(), TemporaryDirectory(prefix="p") as folder:
        session = Session(
            Path(folder), "tutorials", lambda line: line.replace(".venv/bin/penstock", "penstock")
        )
        del session.environment[NO_CONSOLE]
        yield session
        session.clear()


def test_try_it(session: Session) -> None:
    (shown,), ((program, printed),) = UP.findall(SECTION), PROGRAM.findall(SECTION)
    session.start_up("penstock up", shown)
    (session.folder / "old.py").write_text(program)
    assert alike(session.run("python3 old.py")) == alike(printed)
    for command in commands("README.md", "## Try it"):
        session.follow(command)
    session.press_ctrl_c()
