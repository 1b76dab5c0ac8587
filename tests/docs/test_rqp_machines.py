"""Run every command of docs/rqp-mca.md, "Two machines, with a cable", and compare its output with the page.

The machines are network namespaces whose names are unique to this run. Their networks are isolated, so all ports and
addresses are those of the page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.docs.bench import Bench, commands
from tests.tmq.process import ROOT

PAGE, SECTION = "docs/rqp-mca.md", "## Two machines, with a cable"
EXAMPLES = ROOT / "docs" / "examples" / "rqp"
MACHINES = ("harbour", "inland")
MACHINE = re.compile(rf"\b({'|'.join(MACHINES)})\b(?![.-])")  # not in file names
NAMES = {machine: f"{machine}-{os.getpid()}" for machine in MACHINES}  # unique to this run


def machines(bench: Bench) -> set[str]:
    """Return the machines that exist."""
    return set(bench.run("ip netns list").split()) & set(NAMES.values())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    said = partial(MACHINE.sub, lambda found: NAMES[found[0]])
    bench = Bench(tmp_path, "rqp", said)
    yield bench
    bench.clear()
    for name in machines(bench):
        bench.run(f"ip netns delete {name}")
    assert machines(bench) == set()


def test_the_page(bench: Bench) -> None:
    for command in commands(PAGE, SECTION):
        if "netns delete" in command.line and len(machines(bench)) == len(MACHINES):
            bench.press_ctrl_c()
        bench.follow(command)
    assert machines(bench) == set()


@pytest.mark.parametrize("name", ["harbour", "harbour-queues", "inland", "inland-queues"])
def test_page_shows_the_example_files(name: str) -> None:
    page = (ROOT / PAGE).read_text()
    shown = page.partition(f"# {name}.yaml\n")[2].partition("```")[0]
    file = (EXAMPLES / f"{name}.yaml").read_text()
    for part in shown.split("---\n"):
        assert part in file
