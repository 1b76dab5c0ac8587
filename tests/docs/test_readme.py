"""README.md, "Try it": what it shows after `make up` is run, and shows what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.docs.bench import NO_CONSOLE, commands
from tests.docs.session import Session, alike
from tests.docs.talk import follow
from tests.sysv.namespace import own_machine
from tests.tmq.process import ROOT

SECTION = (ROOT / "README.md").read_text().partition("\n## Try it\n")[2].partition("\n## ")[0]
UP = re.compile(r"^```\n(penstock \d.*?)^```", re.M | re.S)
PROGRAM = re.compile(r"^```python\n(.*?)^```\n\n```\n(.*?)^```", re.M | re.S)


@pytest.fixture
def session() -> Iterator[Session]:
    """On a network where nobody has the page's ports."""
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
    found = list(commands("README.md", "## Try it"))
    by_hand = [each for each in found if each.line.startswith("bash ")]
    for each in by_hand:  # replies and messages come in any order
        assert sorted(alike(session.terminal(each.line))) == sorted(alike(each.shown)), each.line
    (session.folder / "old.py").write_text(program)
    assert alike(session.run("python old.py")) == alike(printed)
    follow(session, [each for each in found if each not in by_hand])
    session.press_ctrl_c()
