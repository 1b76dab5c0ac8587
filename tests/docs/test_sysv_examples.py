"""docs/sysv.md 5: every command of the page is run, and shows what the page shows.

On a machine of its own, as far as local queues and ports go: keys and ports are those of the page.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from services.system.pdeathsig import die_with_parent
from services.sysv.settings import SysvSettings
from tests.cli.shell import PATIENCE_S, PROGRAM
from tests.docs.bench import BLOCK, Command, words
from tests.servers import eventually
from tests.sysv.namespace import own_machine
from tests.sysv.program import Program
from tests.tmq.process import ROOT

SECTION = (ROOT / "docs/sysv.md").read_text().partition("\n## 5 Running it\n")[2]
ID = re.compile(r"^(0x[0-9a-f]{8}) \d+ +\S+", re.M)  # of a local queue, and whose it is
LOOKS = ("ipcs ", "penstock peek ")  # may be repeated until they show what is expected


def commands() -> Iterator[Command]:
    for block in BLOCK.findall(SECTION):
        for command in block.removeprefix("$ ").split("\n$ "):
            line, _, shown = command.partition("\n")
            yield Command(line, shown)


class Machine:
    """A folder with the program in it, and a `penstock` in the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[subprocess.Popen[bytes]] = []
        path = folder / "bin" / "penstock"
        path.parent.mkdir()
        path.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
        path.chmod(0o755)
        Program.compiled(folder)
        foreign = ("PENSTOCK_", "REDIS_URL", "COLUMNS")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        path_of_all = f"{path.parent}:{Path(sys.executable).parent}:{clean['PATH']}"
        self._environment = {**clean, "PATH": path_of_all, "PYTHONPATH": str(ROOT)}

    def follow(self, command: Command) -> None:
        line, is_beside = command.line.removesuffix(" &"), command.line.endswith(" &")
        if is_beside:
            self.start(line, "sysv_started")
        elif line.startswith(LOOKS):
            eventually(lambda: self._shows(line) == expected(command.shown), PATIENCE_S)
        else:
            assert self._shows(line) == expected(command.shown), line

    def _shows(self, line: str) -> list[list[str]]:
        """What a terminal shows; of what fails the last line."""
        done = subprocess.run(
            line, shell=True, cwd=self.folder, env=self._environment, capture_output=True, text=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        if done.returncode:
            return expected(f"{done.stderr.splitlines()[-1]}\n(exit {done.returncode})")
        return expected(done.stdout)

    def complaint(self, line: str) -> str:
        """The last line of a command that fails."""
        done = subprocess.run(
            line, shell=True, cwd=self.folder, env=self._environment, capture_output=True, text=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode, done
        return done.stderr.splitlines()[-1]

    def start(self, line: str, ready: str) -> None:
        """In the background, until it says that it is ready."""
        log = self.folder / f"log-{len(self._running)}"
        with log.open("wb") as out:
            process = subprocess.Popen(
                f"exec {line}", shell=True, cwd=self.folder, env=self._environment, stdout=out, stderr=out,
                start_new_session=True, preexec_fn=partial(die_with_parent, os.getpid()),
            )  # fmt: skip
        self._running.append(process)
        eventually(lambda: ready in log.read_text() or process.poll() is not None, PATIENCE_S)
        assert process.poll() is None, log.read_text()

    def press_ctrl_c(self) -> list[int]:
        """Statuses, the last one that was started first."""
        statuses = []
        for process in reversed(self._running):
            process.send_signal(signal.SIGINT)
            statuses.append(process.wait(PATIENCE_S))
        return statuses

    def clear(self) -> None:
        """However the test went: nothing stays behind."""
        for process in self._running:
            process.kill()
            process.wait()


def expected(shown: str) -> list[list[str]]:
    return words(ID.sub(r"\1 ID OWNER", shown))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with own_machine():
        machine = Machine(tmp_path)
        yield machine
        machine.clear()


def test_the_page(machine: Machine) -> None:
    machine.start("penstock up", "ready; Ctrl-C")
    for command in commands():
        machine.follow(command)
    assert machine.press_ctrl_c() == [0, 0]


def test_the_settings_of_the_page() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```", SECTION, re.M | re.S)
    settings = SysvSettings.model_validate(yaml.safe_load(block)["sysv"])
    assert [mapping.permissions for mapping in settings.mappings.values()] == [0o600, 0o660, 0o600]
