"""docs/rqp.md, "Two machines, with a cable": every command of the page is run, and shows what the page shows.

The machines are network namespaces with names of this run's own: their networks are apart from everybody's, so all
ports and addresses are those of the page.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from services.kit.parent import die_with_parent
from tests.cli.shell import PATIENCE_S, PROGRAM
from tests.servers import eventually
from tests.tmq.process import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "rqp"
MACHINES = ("harbour", "inland")
MACHINE = re.compile(rf"\b({'|'.join(MACHINES)})\b(?![.-])")  # not in names of files
BLOCK = re.compile(r"^```\n(\$ .*?)^```", re.M | re.S)
AGE = re.compile(r"\b\d+s\b")
LOOKS = re.compile(r" penstock (peek|queue list) ")  # may be repeated until it shows what is expected


@dataclass(frozen=True, slots=True)
class Command:
    line: str
    shown: str


def commands() -> Iterator[Command]:
    """Those of the section, in their order."""
    page = (ROOT / "docs/rqp.md").read_text()
    section = page.partition("\n## Two machines, with a cable\n")[2].partition("\n## ")[0]
    for block in BLOCK.findall(section):
        for command in block.removeprefix("$ ").split("\n$ "):
            line, _, shown = command.partition("\n")
            yield Command(line, shown)


def words(text: str) -> list[list[str]]:
    """Without what differs from run to run: ages, and how wide they make the columns."""
    return [line.split() for line in AGE.sub("?s", text).replace("─", "").splitlines() if line.strip()]


class Bench:
    """A folder, a `penstock` in the path, and names of namespaces that nobody else has."""

    def __init__(self, folder: Path) -> None:
        self.folder = shutil.copytree(EXAMPLES, folder / "examples")
        self.names = {machine: f"{machine}-{os.getpid()}" for machine in MACHINES}
        self._ups: list[subprocess.Popen[bytes]] = []
        path = folder / "bin" / "penstock"
        path.parent.mkdir()
        path.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
        path.chmod(0o755)
        foreign = ("PENSTOCK_", "REDIS_URL", "COLUMNS")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self._environment = {
            **clean,
            "PATH": f"{path.parent}:{Path(sys.executable).parent}:{clean['PATH']}:/usr/sbin:/sbin",
            "PYTHONPATH": str(ROOT),
        }

    def follow(self, command: Command) -> None:
        line = MACHINE.sub(lambda found: self.names[found[0]], command.line)
        if " penstock up " in line:
            self._start_up(line)
        elif LOOKS.search(line):
            eventually(lambda: words(self._run(line)) == words(command.shown), PATIENCE_S)
        else:
            assert words(self._run(line)) == words(command.shown), line

    def _run(self, line: str) -> str:
        done = subprocess.run(
            line, shell=True, cwd=self.folder, env=self._environment, capture_output=True, text=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, (line, done.stderr)
        return done.stdout

    def _start_up(self, line: str) -> None:
        """In a terminal of its own, as far as anybody can tell; returns when it says that it is ready."""
        log = self.folder / f"up-{len(self._ups)}"
        with log.open("wb") as out:
            up = subprocess.Popen(
                f"exec {line}", shell=True, cwd=self.folder, env=self._environment, stdout=out, stderr=out,
                start_new_session=True, preexec_fn=partial(die_with_parent, os.getpid()),
            )  # fmt: skip
        self._ups.append(up)
        eventually(lambda: "ready; Ctrl-C" in log.read_text() or up.poll() is not None, PATIENCE_S)
        assert up.poll() is None, log.read_text()

    def press_ctrl_c(self) -> None:
        for up in self._ups:
            up.send_signal(signal.SIGINT)
        assert [up.wait(PATIENCE_S) for up in self._ups] == [0 for _ in self._ups]

    def machines(self) -> set[str]:
        """Those that there are."""
        return set(self._run("ip netns list").split()) & set(self.names.values())

    def clear(self) -> None:
        """However the test went: nothing stays behind."""
        for up in self._ups:
            up.kill()
            up.wait()
        for name in self.machines():
            self._run(f"ip netns delete {name}")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.clear()
    assert bench.machines() == set()


def test_the_page(bench: Bench) -> None:
    for command in commands():
        if "netns delete" in command.line and len(bench.machines()) == len(MACHINES):
            bench.press_ctrl_c()
        bench.follow(command)
    assert bench.machines() == set()


@pytest.mark.parametrize("name", ["harbour", "harbour-queues", "inland", "inland-queues"])
def test_the_page_shows_what_is_in_the_files(name: str) -> None:
    page = (ROOT / "docs/rqp.md").read_text()
    shown = page.partition(f"# {name}.yaml\n")[2].partition("```")[0]
    file = (EXAMPLES / f"{name}.yaml").read_text()
    for part in shown.split("...\n"):
        assert part in file
