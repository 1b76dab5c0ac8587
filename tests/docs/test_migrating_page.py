"""Check that the programs of docs/migrating.md move messages between two systems, one in place of the old servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from services.ring.node.settings import NodeSettings
from tests.docs.bench import commands
from tests.docs.session import Session
from tests.servers import eventually
from tests.sysv.namespace import own_machine
from tests.tmq.process import ROOT

PAGE = "docs/migrating.md"
# an original TMQ server has one port, 6161
OLD = {"old.example:6161": "127.0.0.1:7162", "old.example:7171": "127.0.0.1:7271"}
PORTS = (
    "edges.tmq.listeners.reference.port=7162 edges.tmq.listeners.document=off edges.pubsub.listeners.text.port=7271 "
    "edges.pubsub.listeners.link=off edges.ring.listeners.ring=off edges.ring.listeners.clients.port=9300 "
    "edges.rqp.listeners.mca.port=12311 edges.rqp.cast.host=127.0.0.2"
)


def at_old(line: str) -> str:
    for name, place in OLD.items():
        line = line.replace(name, place)
    return line


@pytest.fixture
def session() -> Iterator[Session]:
    """Yield a session with Penstock on its usual ports, and the old system on others."""
    with own_machine(), TemporaryDirectory(prefix="p") as folder:
        session = Session(Path(folder), "migrate", at_old)
        session.start_up("penstock up")
        settings = " ".join(f"--set {each}" for each in PORTS.split())
        session.start_up(f"penstock up --data-dir penstock-data-old {settings}")
        yield session
        session.clear()


def test_messages_of_a_tmq_server_are_moved(session: Session) -> None:
    old = "--store unix://$PWD/penstock-data-old/store.sock"
    for line in (
        f"penstock queue create orders {old}",
        f"printf 'a\\nb\\n' | penstock put orders --lines {old}",
    ):
        session.run(line)
    for command in commands(PAGE, "## TMQ"):
        session.follow(command)
    assert session.run("penstock get orders -n 2") == "a\nb\n"
    session.press_ctrl_c()


def test_tags_are_repeated_at_the_new_server(session: Session) -> None:
    (relay,) = commands(PAGE, "## Text pub/sub")
    session.run("penstock queue create new --bindings-text-subscribe order.new")
    log = session.folder / "relay.log"
    session.start_up(f"sh -c '{at_old(relay.line)} >relay.log & echo ready; wait'", ready="ready")

    def arrives() -> bool:
        session.run("printf 'SEND order.new a pump\\n' | nc -N 127.0.0.1 7271")
        return "repeated order.new a pump" in log.read_text()

    eventually(arrives, 20)
    assert session.run("penstock get new") == "a pump"


def test_its_settings_are_settings() -> None:
    section = (ROOT / PAGE).read_text().partition("\n## Ring\n")[2]
    text = section.partition("```yaml\n")[2].partition("```")[0]
    node = yaml.safe_load(text)["edges"]["ring"]["node"]
    assert NodeSettings(**node).max_payload == 8188
