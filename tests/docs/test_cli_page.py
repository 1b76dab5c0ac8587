"""Run every command of docs/cli.md in order, and compare its output with the page."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.cli.shell import ANY_PORT, Shell, Terminal
from tests.docs.bench import NO_CONSOLE, READY, commands
from tests.docs.inventory import headings
from tests.docs.session import Session
from tests.docs.talk import Talk
from tests.servers import eventually
from tests.sysv.namespace import own_machine
from tests.tmq.process import ROOT

HERE, PAGE = "docs/test_cli_page.py", "docs/cli.md"
TEXT = (ROOT / PAGE).read_text()
PORTS, QUEUES, PEERS = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.M | re.S)
LOGGED = re.compile(r"^\d{4}-\S+Z [A-Z]+ .*\n", re.M)  # startup warnings of some machines
TOKEN = re.compile(r"(?<=#token=)[\w-]+")
ACTION = re.compile(r"\baction=(\w+)")
New = Callable[[str], Session]


@pytest.fixture
def new() -> Iterator[New]:
    """Yield a function that opens a terminal in a folder with the page's files, with the page's ports free."""
    made: list[Session] = []
    with own_machine(), TemporaryDirectory(prefix="p") as place:

        def session(name: str) -> Session:
            (Path(place) / name).mkdir()
            made.append(Session(Path(place) / name, "."))
            made[-1].folder = Path(place) / name
            del made[-1].environment[NO_CONSOLE]
            (made[-1].folder / "queues.yaml").write_text(QUEUES)
            (made[-1].folder / "peers.yaml").write_text(PEERS)
            return made[-1]

        yield session
        for each in made:
            each.clear()


def follow(session: Session, *headings: str) -> None:
    assert list(session.section(PAGE, *headings))


def test_without_a_store(new: New) -> None:
    follow(new("alone"), *headings(f"{HERE}::test_without_a_store", PAGE))


def plain_shell(session: Session) -> Shell:
    """Return a shell in the session's folder, at the ports of the page."""
    shell = Shell(session.folder)
    for name in ANY_PORT:
        del shell.environment[name]
    return shell


def test_section_up(new: New) -> None:
    """Check the section "up", including a kill between its commands."""
    home, other = new("home"), new("other")
    first, again, lost, taker, taken = commands(PAGE, "## up")
    with Talk(taker, other, other.folder / "taker"):
        eventually(lambda: "LISTEN" in other.terminal("ss -ltn 'sport = :6161'"))
        other.must_show(taken)
    head, _, after = first.shown.partition(READY)
    with plain_shell(home).terminal("up") as terminal:
        eventually(lambda: terminal.sees(READY))
        assert TOKEN.sub("", LOGGED.sub("", said(terminal))).startswith(TOKEN.sub("", head))
        home.must_show(again)
        for command in commands(PAGE, "## serve"):
            home.must_show(command)
        os.kill(json.loads((home.folder / "penstock-data/up.lock").read_text())["store_pid"], signal.SIGKILL)
        for action in ACTION.findall(after):
            eventually(lambda action=action: terminal.sees(f"action={action}"))
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 0
        assert said(terminal).endswith("\nstopped\n")
    home.must_show(lost)
    follow(home, "## store init")


def test_two_on_one_machine_with_the_ports_of_the_page(new: New) -> None:
    """Check "A second one on the same machine": both have their own listeners, and nothing is in the way."""
    first, second = new("first"), new("second")
    (second.folder / "penstock.yaml").write_text(PORTS)
    for session in (first, second):
        session.start_up("penstock up")
    listening = second.terminal("ss -ltnH") + second.terminal("ss -lunH")
    ports = set(re.findall(r"(?:port|_port): (\d+)", PORTS))
    assert len(ports) == 11
    assert ports <= set(re.findall(r":(\d+) ", listening))
    for session in (first, second):
        session.press_ctrl_c()


def said(terminal: Terminal) -> str:
    return terminal.screen.decode().replace("\r\n", "\n")


def test_queues_and_messages(new: New) -> None:
    home = new("home")
    home.start_up("penstock up --store-port 6399")
    follow(home, *headings(f"{HERE}::test_queues_and_messages", PAGE))
    home.press_ctrl_c()


def test_rqp_send(new: New) -> None:
    """Check `rqp send` with the two systems of docs/rqp-mca.md on one machine."""
    home = new("home")
    for path in (home.examples / "rqp").glob("*.yaml"):
        shutil.copy(path, home.folder)
    follow(home, "## rqp send")
    home.press_ctrl_c()


def test_ring_status(new: New) -> None:
    """Check `ring status` with three nodes that find each other sooner than by default."""
    home = new("home")
    times = {"OWN_RING_S": "3", "SELF_S": "6", "OPEN_S": "2", "FIND_S": "3"}
    home.environment |= {f"PENSTOCK_EDGES__RING__NODE__TIMES__{name}": value for name, value in times.items()}
    follow(home, "## ring status")
    home.press_ctrl_c()
