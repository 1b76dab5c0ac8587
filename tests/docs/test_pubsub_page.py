"""Run the commands of docs/pubsub.md in order, and compare their output with the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.docs.bench import commands
from tests.docs.session import Session
from tests.docs.talk import follow
from tests.servers import eventually
from tests.sysv.namespace import own_machine
from tests.tmq.process import ROOT

PAGE = "docs/pubsub.md"
FOLLOWED = re.compile(r" pubsub-\S+-[0-9a-f]{8} ")


def test_first_line_of_every_file_has_its_command() -> None:
    for path in (ROOT / "docs" / "examples" / "pubsub").glob("*.yaml"):
        first = path.read_text().partition("\n")[0]
        assert re.search(rf"penstock (up|serve pubsub|queue apply) (--config|-f) {path.name}$", first), first


@pytest.fixture
def session() -> Iterator[Session]:
    """Yield a session in the folder of the examples, on a network with the page's ports free."""
    with own_machine(), TemporaryDirectory(prefix="p") as folder:
        session = Session(Path(folder), "pubsub")
        yield session
        session.clear()


def linked(session: Session, **followers: int) -> None:
    """Wait until this many neighbours of each store are followed."""
    for name, number in followers.items():
        line = f"penstock log show --data-dir penstock-data/{name.replace('_', '-')}"
        eventually(
            lambda line=line: session.terminal(line),
            until=lambda said, n=number: len(FOLLOWED.findall(said)) == n,
        )


def test_alone(session: Session) -> None:
    """Check "Alone", and the output of the link port."""
    follow(session, commands(PAGE, "## Alone"))
    (_, link) = commands(PAGE, "## How it works")
    session.follow(link)
    session.press_ctrl_c()


def test_two_servers_on_one_store_and_bridges_to_queues(session: Session) -> None:
    follow(session, commands(PAGE, "## Two servers on one store"))
    follow(session, commands(PAGE, "## Bridges to queues"))
    session.press_ctrl_c()


def test_three_stores_in_a_chain(session: Session) -> None:
    *ups, one, other, middle, end = commands(PAGE, "## Three stores in a chain")
    follow(session, ups)
    linked(session, ring_a=1, ring_b=2, ring_c=1)
    follow(session, (one, other, middle, end))
    session.press_ctrl_c()


def test_three_stores_in_a_ring(session: Session) -> None:
    """Check the three stores in a ring, and the output of `log show` that docs/cli.md shows for them."""
    a, b, c, client, sent, again, log = commands(PAGE, "## Three stores in a ring")
    follow(session, (a, b, c))
    linked(session, ring_a=2, ring_b=2, ring_c=2)
    session.press_ctrl_c_in(1)
    follow(session, (client, sent))
    follow(session, (again,))
    linked(session, ring_b=2)
    for command in (log, *commands("docs/cli.md", "## log")):
        session.follow(command)
    session.press_ctrl_c()


def test_links_with_tls(session: Session) -> None:
    authority, certificates, east, west, client, sent = commands(PAGE, "## Links with TLS")
    for command in (authority, certificates):
        session.run(command.line)
    follow(session, (east, west))
    linked(session, tls_east=1, tls_west=1)
    follow(session, (client, sent))
    session.press_ctrl_c()
