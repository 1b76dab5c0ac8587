"""Run the commands of a page in order, as a reader would, and compare their output with the page."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from services.system.pdeathsig import die_with_parent
from tests.cli.shell import PATIENCE_S
from tests.docs.forking import script
from tests.servers import eventually
from tests.tmq.process import ROOT

BLOCK = re.compile(r"^```\n(\$ .*?)^```", re.M | re.S)
USER_AT_HOST = re.compile(r"\bcli [^\s@\"]+@[\w.-]+")
READY = "ready; press Ctrl-C"
LEFT = shutil.ignore_patterns("penstock-data*", "__pycache__")  # left by a reader who ran the examples here
HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?$", re.M)
AGE = re.compile(r"\b\d+[sm]\b")
BREAK = re.compile(r"(none|(inbound|outbound|both), \?s ago: .*?) +(?=\?s ago$)", re.M)  # of `ring status`
READ_ONLY = re.compile(  # may be repeated until the expected output appears
    r"penstock (doctor|peek|log show|queue list|ring status)\b|/readyz$|^ipcs "
)
RETRY_S = 0.25
# left unset on the few pages that show the console, which adds a second to each start
NO_CONSOLE = "PENSTOCK_CONSOLE__ENABLED"


@dataclass(frozen=True, slots=True)
class Command:
    line: str
    shown: str


def commands(page: str, section: str) -> Iterator[Command]:
    """Yield the commands of a section, which may be part of another section, in order."""
    depth = len(section.partition(" ")[0])
    text = (ROOT / page).read_text().partition(f"\n{section}\n")[2]
    (own, *_) = re.split(rf"^#{{2,{depth}}} ", text, flags=re.M)
    for block in BLOCK.findall(own):
        yield from split(block)


def split(block: str) -> Iterator[Command]:
    for command in block.removeprefix("$ ").split("\n$ "):
        yield parse_command(command)


def parse_command(text: str) -> Command:
    """Return one command, which may span several lines, with the output that the page shows for it."""
    line, _, shown = text.partition("\n")
    while is_open(line):
        more, _, shown = shown.partition("\n")
        line += "\n" + more
    return Command(line, shown)


def is_open(text: str) -> bool:
    """Return whether a shell would read another line: after a backslash, in a loop, in a here-document."""
    if text.endswith("\\") or len(re.findall(r"\bdo\b", text)) > len(re.findall(r"\bdone\b", text)):
        return True
    end = HERE_DOCUMENT.search(text)
    return end is not None and end[1] not in text.splitlines()


def words(text: str) -> list[list[str]]:
    """Return the words of each line without what differs between runs: ages, last failures, user, column widths."""
    alike = BREAK.sub("", AGE.sub("?s", USER_AT_HOST.sub("cli ?", text)))
    return [line.split() for line in alike.replace("─", "").splitlines() if line.strip()]


class Bench:
    """A folder with the examples, and a `penstock` in the path."""

    def __init__(self, folder: Path, examples: str, said: Callable[[str], str] = str) -> None:
        """Copy `examples`, a folder of docs/examples; `said` maps each line of the page to the line that is run."""
        self.examples = shutil.copytree(
            ROOT / "docs" / "examples" / examples, folder / "examples", ignore=LEFT
        )
        self.folder = self.examples
        self.said = said
        self._ups: list[subprocess.Popen[bytes]] = []
        path = folder / "bin" / "penstock"
        path.parent.mkdir()
        path.write_text(script())
        path.chmod(0o755)
        foreign = ("PENSTOCK_", "REDIS_URL", "COLUMNS")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self.environment = {
            **clean,
            "PATH": f"{path.parent}:{Path(sys.executable).parent}:{clean['PATH']}:/usr/sbin:/sbin",
            "PYTHONPATH": str(ROOT),
            NO_CONSOLE: "false",
        }

    def follow(self, command: Command) -> None:
        line = self.said(command.line)
        if "penstock up " in line:
            self.start_up(line, command.shown)
        elif READ_ONLY.search(line):
            self._look(line, words(command.shown))
        else:
            assert words(self.run(line)) == words(command.shown), line

    def _look(self, line: str, wanted: list[list[str]]) -> None:
        seen: list[list[str]] = []

        def is_shown() -> bool:
            seen[:] = words(self.run(line, is_certain=False))
            return seen == wanted

        try:
            eventually(is_shown, PATIENCE_S, pause_s=RETRY_S)
        except AssertionError:
            raise AssertionError((line, seen, wanted)) from None

    def run(self, line: str, *, is_certain: bool = True) -> str:
        """Return the standard output of a command. With is_certain, the command must succeed."""
        done = subprocess.run(
            line, shell=True, cwd=self.folder, env=self.environment, capture_output=True, text=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0 or not is_certain, (line, done.stderr)
        return done.stdout

    def start_up(self, line: str, shown: str = "", ready: str = READY) -> None:
        """Start a command as in a terminal of its own; return when it reports that it is ready.

        Its output up to then must contain the lines of `shown` in this order.
        """
        log = self.folder / f"up-{len(self._ups)}"
        with log.open("wb") as out:
            up = subprocess.Popen(
                f"exec env {line}", shell=True, cwd=self.folder, env=self.environment, stdout=out, stderr=out,
                start_new_session=True, preexec_fn=partial(die_with_parent, os.getpid()),
            )  # fmt: skip
        self._ups.append(up)
        eventually(lambda: ready in log.read_text() or up.poll() is not None, PATIENCE_S)
        assert up.poll() is None, log.read_text()
        # a token is printed to a terminal only; otherwise its file is named
        said = (text.partition(" (token in ")[0] for text in log.read_text().splitlines())
        for each in re.sub(r"#token=[\w-]+", "", shown).splitlines():
            assert each in ("", "...") or each in said, (line, each, log.read_text())

    def press_ctrl_c(self) -> None:
        """Press Ctrl-C in all terminals that run a command."""
        self.press_ctrl_c_in(*range(len(self._ups)))

    def press_ctrl_c_in(self, *numbers: int) -> None:
        """Press Ctrl-C in these terminals, numbered from 0 in the order in which they were opened."""
        ups = [self._ups[number] for number in numbers if self._ups[number].poll() is None]
        for up in ups:
            up.send_signal(signal.SIGINT)
        assert [up.wait(PATIENCE_S) for up in ups] == [0 for _ in ups]

    def clear(self) -> None:
        """Kill all commands that still run, also after a failed test."""
        for up in self._ups:
            up.kill()
            up.wait()
