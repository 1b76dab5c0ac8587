"""docs/cli.md: what it shows of edges is what they are. One that it does not show yet is none of its faults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_sysv_examples import Machine
from tests.sysv.namespace import own_machine
from tests.tmq.process import ROOT

PAGE = (ROOT / "docs/cli.md").read_text()
HEALTH = re.compile(r"(metrics and health: http://127\.0\.0\.1):\d+")  # counted up over all edges
ALLOWED = re.compile(r"(?<=; allowed: )[a-z, ]+(?= \()")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with own_machine():
        machine = Machine(tmp_path)
        yield machine
        machine.clear()


def shown(command: str) -> str:
    """What the page shows of a command, at its first place."""
    found = re.search(rf"^\$ {re.escape(command)}\n(.*?)(?=^\$ |^```)", PAGE, re.M | re.S)
    assert found, command
    return found[1]


def edges(text: str) -> dict[str, list[str]]:
    """The lines of each edge as `up` prints them; between the lines of its log."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if head := re.match(r"([a-z]+) [a-z]+: 127\.0\.0\.1:\d+$", line):
            name = head[1]
        elif not line.startswith("    "):
            name = name if line.startswith("{") else ""
            continue
        if name:
            found.setdefault(name, []).append(HEALTH.sub(r"\1", line))
    return found


def test_up_announces_each_edge_as_the_page_shows(machine: Machine) -> None:
    machine.start("penstock up", "ready; Ctrl-C")
    real, told = edges((machine.folder / "log-0").read_text()), edges(shown("penstock up"))
    assert machine.press_ctrl_c() == [0]
    assert {"pubsub", "rqp", "tmq"} <= told.keys()
    assert {name: real.get(name) for name in told} == told


def test_a_setting_that_nobody_knows(machine: Machine) -> None:
    """With the edges that there are."""
    command = "penstock config --set edges.tqm.workers=4"
    real, told = machine.complaint(command), shown(command).splitlines()[0]
    names = [set(ALLOWED.findall(line)[0].split(", ")) for line in (told, real)]
    assert ALLOWED.sub("", real) == ALLOWED.sub("", told)
    assert {"pubsub", "rqp", "tmq"} <= names[0] <= names[1]
