"""docs/rqp.md: two systems on one machine, and two machines, as the page has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.docs.session import Session
from tests.sysv.namespace import own_machine

PAGE = "docs/rqp.md"


@pytest.fixture
def session() -> Iterator[Session]:
    """In the folder of the examples, on a network where nobody has the page's ports."""
    with own_machine(), TemporaryDirectory(prefix="p") as folder:
        session = Session(Path(folder), "rqp")
        yield session
        session.clear()


def test_two_systems_on_one_machine(session: Session) -> None:
    """And what is shown when west is away, once one more message waits for it."""
    assert list(session.section(PAGE, "## Two systems on one machine"))
    session.press_ctrl_c_in(0)
    session.run("penstock put orders-for-west 'five barrels'")
    assert list(session.section(PAGE, "## When nothing gets through"))
    session.press_ctrl_c()


def test_two_machines(session: Session) -> None:
    assert list(session.section(PAGE, "### Two machines"))
    session.press_ctrl_c()
