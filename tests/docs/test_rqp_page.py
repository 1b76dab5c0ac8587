"""Check docs/rqp-mca.md and docs/rqp-cast.md: two systems, two machines, and a complete list of reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from services.kit.net.refusals import Refusal
from services.rqp.mca.failure_reports import FAILURE_TEXTS
from tests.docs.session import Session
from tests.docs.test_reasons import labels_in, labels_used_in
from tests.sysv.namespace import own_machine
from tests.tmq.process import ROOT

PAGE, CAST = "docs/rqp-mca.md", "docs/rqp-cast.md"
TEXT = (ROOT / PAGE).read_text()
OF_QUEUES = {"queue_unknown", "queue_paused", "queue_full", "queue_reserved"}


@pytest.fixture
def session() -> Iterator[Session]:
    """Yield a session in the folder of the examples, on a network with the page's ports free."""
    with own_machine(), TemporaryDirectory(prefix="p") as folder:
        session = Session(Path(folder), "rqp")
        yield session
        session.clear()


def test_two_systems_on_one_machine(session: Session) -> None:
    """Check two systems on one machine, the output while west is down and a message waits, and a peer in the store."""
    assert list(session.section(PAGE, "## Two systems on one machine"))
    session.press_ctrl_c_in(0)
    session.run("penstock put orders-for-west 'five barrels'")
    assert list(session.section(PAGE, "## When messages are not delivered"))
    (document,) = re.findall(r"^```yaml\n(# south.yaml\n.*?)^```", TEXT, re.M | re.S)
    (session.folder / "south.yaml").write_text(document)
    assert list(session.section(PAGE, "## Peers"))
    session.press_ctrl_c()


def test_two_machines(session: Session) -> None:
    assert list(session.section(CAST, "## Two machines"))
    session.press_ctrl_c()


def test_each_reason_is_on_the_page() -> None:
    reasons = TEXT.partition("### Reasons of refusals")[2]
    codec = labels_used_in("protos/rqp_mca") | {"unknown_message", "bad_uint4", "bad_type"}
    assert codec | OF_QUEUES | {str(reason) for reason in Refusal} <= labels_in(reasons)
    failures = TEXT.partition("## When messages are not delivered")[2].partition("\n## ")[0]
    assert {failure.value for failure in FAILURE_TEXTS} <= labels_in(failures)
