"""Follow a tutorial as a reader does: named terminals for commands that keep running, one terminal for all others.

```console               commands to run one after the other, each with its output
```console title="x"     a command that keeps running in terminal x, with the output so far
```text title="x"        further output of terminal x; `^C` is pressed there and ends the command
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
from tests.docs.bench import READ_ONLY, Bench, Command, split, words
from tests.servers import eventually
from tests.tmq.process import ROOT

BLOCK = re.compile(r'^```(console|text)(?: title="(.*?)")?\n(.*?)^```$', re.M | re.S)
REST = "..."  # stands for the rest of the output


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    terminal: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    for kind, terminal, text in BLOCK.findall((ROOT / page).read_text()):
        yield Block(kind, terminal, text)


class Terminal:
    """A terminal in which a command keeps running."""

    def __init__(self, line: str, folder: Path, environment: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                f"exec {line}", shell=True, cwd=folder, env=environment, stdout=out, stderr=out,
                start_new_session=True, preexec_fn=partial(die_with_parent, os.getpid()),
            )  # fmt: skip

    def must_show(self, text: str) -> None:
        """Check that the lines appear in this order; other lines may come between them only if the page shows `...`."""
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
        """Stop the command, with Ctrl-C if possible, so that it writes nothing into a folder that is being removed."""
        if self._process.poll() is None:
            self.press_ctrl_c()


class Reader:
    """A reader that follows one page after the other in a copy of docs/examples."""

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
        elif command.line.startswith("make "):  # already done; otherwise no test could run
            self._bench.run(f"make --dry-run --directory {ROOT} {command.line.removeprefix('make ')}")
        elif not command.line.startswith("export PATH="):
            self._until_shown(command)

    def _until_shown(self, command: Command) -> None:
        """Repeat a read-only command until its output is that of the page; run any other command once."""
        if READ_ONLY.search(command.line):
            self._bench.follow(command)
            return
        shows_why_not = bool(command.shown)  # a command without output must succeed
        seen = words(self._bench.run(command.line, is_certain=not shows_why_not))
        assert seen == words(command.shown), (command.line, seen)

    def clear(self) -> None:
        for terminal in self._terminals.values():
            terminal.clear()
        self._bench.clear()
