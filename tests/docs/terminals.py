"""A tutorial, followed as a reader does: terminals with names in which something goes on, and one for everything else.

```console               commands, one after the other, and what each shows
```console title="x"     a command that goes on in terminal x; what is shown of it has appeared there
```text title="x"        what has appeared in terminal x since; `^C` is pressed there, and it ends
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from services.system.pdeathsig import die_with_parent
from tests.cli.shell import PATIENCE_S
from tests.docs.bench import LOOKS, Bench, Command, split, words
from tests.servers import eventually
from tests.tmq.process import ROOT

BLOCK = re.compile(r'^```(console|text)(?: title="(.*?)")?\n(.*?)^```$', re.M | re.S)
REST = "..."  # of what is shown


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    terminal: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    for kind, terminal, text in BLOCK.findall((ROOT / page).read_text()):
        yield Block(kind, terminal, text)


class Terminal:
    """Something goes on in it."""

    def __init__(self, line: str, folder: Path, environment: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                f"exec {line}", shell=True, cwd=folder, env=environment, stdout=out, stderr=out,
                start_new_session=True, preexec_fn=partial(die_with_parent, os.getpid()),
            )  # fmt: skip

    def must_show(self, text: str) -> None:
        """Line by line, in this order, whatever else is between them where the page says that something is."""
        wanted = [line for line in text.splitlines() if line != REST]
        is_whole = REST not in text.splitlines()

        def is_shown() -> bool:
            assert self._process.poll() is None, self._log.read_text()
            lines = self._log.read_text().splitlines()
            rest = iter(lines)
            return all(line in rest for line in wanted) and (not is_whole or len(lines) == len(wanted))

        try:
            eventually(is_shown, PATIENCE_S)
        except AssertionError:
            raise AssertionError((text, self._log.read_text())) from None

    def press_ctrl_c(self) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()

    def clear(self) -> None:
        """In order if it can be, so that nothing of it writes into a folder that is being removed."""
        if self._process.poll() is None:
            self.press_ctrl_c()


class Reader:
    """Follows one page after the other in a copy of docs/examples."""

    def __init__(self, folder: Path) -> None:
        self._bench = Bench(folder, ".")
        self._examples = self._bench.folder
        self._terminals: dict[str, Terminal] = {}
        self._shown: dict[str, str] = {}
        self._folder = folder

    def follow(self, block: Block) -> None:
        match block:
            case Block("console", ""):
                for command in split(block.text):
                    self._run(command)
            case Block("console", name):
                (command,) = split(block.text)
                log = self._folder / f"terminal-{len(self._terminals)}-{time.monotonic_ns()}"
                self._terminals[name] = Terminal(
                    command.line, self._bench.folder, self._bench.environment, log
                )
                self._show(name, command.shown)
            case Block("text", name) if block.text == "^C\n":
                self._terminals[name].press_ctrl_c()
            case Block("text", name) if name:
                self._show(name, self._shown[name] + block.text)

    def _show(self, name: str, text: str) -> None:
        self._shown[name] = text
        self._terminals[name].must_show(text)

    def _run(self, command: Command) -> None:
        if command.line.startswith("cd docs/examples/"):
            self._bench.folder = self._examples / command.line.removeprefix("cd docs/examples/")
        elif command.line.startswith("make "):  # it has been done, or no test could run
            self._bench.run(f"make --dry-run --directory {ROOT} {command.line.removeprefix('make ')}")
        elif not command.line.startswith("export PATH="):
            self._until_shown(command)

    def _until_shown(self, command: Command) -> None:
        """What is under way arrives some time: who only looks looks again. Everything else is done once."""
        if LOOKS.search(command.line):
            self._bench.follow(command)
            return
        shows_why_not = bool(command.shown)  # one that shows nothing has done it
        seen = words(self._bench.run(command.line, is_certain=not shows_why_not))
        assert seen == words(command.shown), (command.line, seen)

    def clear(self) -> None:
        for terminal in self._terminals.values():
            terminal.clear()
        self._bench.clear()
