"""Follow a page at one terminal: the output and exit status of each command are those on the page."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from functools import partial

from services.system.pdeathsig import die_with_parent
from tests.cli.shell import PATIENCE_S
from tests.docs.bench import READ_ONLY, READY, RETRY_S, Bench, Command, commands, words
from tests.servers import eventually

BESIDE = re.compile(r"^([A-Z_]+=\S+ )*penstock (up|serve)\b")  # runs in a terminal of its own
LISTENS = "health_listening"
EXPORT = re.compile(r"^export (\w+)=(\S*)$")
BAR = "━"  # of a progress bar, which is redrawn and removed at the end
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PROMPT = (b" to confirm: ", b" them too: ")
LOG = re.compile(r'^\{"time": .*\n', re.M)  # not shown at a real terminal, which gets warnings only
FAILED = "(exit "
REST = "..."  # stands for the rest of the output
ASKED = re.compile(r"Type the queue's name to [\w ]+: (\S+)$", re.M)  # and the answer
DIFFERS = tuple(  # differs between runs
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"\b\d{13}-\d+\b", "ID"),
        (r"\b(redis|valkey) \d+\.\d+\.\d+", r"\1 VERSION"),
        (r'"enqueued_ms":\d+', '"enqueued_ms":0'),
        (r"\bpid \d+\b", "pid N"),
        (r"\b[0-9a-f]{16}\b", "INCARNATION"),
        (r"\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{12}(\.\d+)?\b|(?<= )\d{12}(?=[ .\n]|\Z)", "DATASET"),
        (r"(DATASET/INCARNATION:)1-\d+", r"\1N"),
        (r"\b(tmq|pubsub|ring|rqp|console)-\S+-\d+-[0-9a-f]{8}\b( [0-9a-f]+\.\d+)?", r"\1-SESSION"),
        # depends on which lines arrived together
        (r"\bin \d+ entr(y|ies), \d+ bytes", "in N entries, N bytes"),
        (r"\bAOF of [\d,]+ bytes", "AOF of N bytes"),
        (r"[\d,]+ bytes, \d+% of maxmemory", "N bytes, N% of maxmemory"),
        (r"\bmaxmemory \d+", "maxmemory N"),
        (r"(\d alive) \(.*\)", r"\1"),  # in any order
        (r"(?m)^(0x[0-9a-f]{8}) \d+ +\S+", r"\1 ID OWNER"),  # ID and owner of a local queue
        (r"the store's is .*", "the store's is N ms off"),
    )
)


def alike(text: str) -> list[list[str]]:
    """Return the words of each line, without what differs between runs."""
    for pattern, instead in DIFFERS:
        text = pattern.sub(instead, text)
    return words(text)


def is_shown(wanted: list[list[str]], seen: list[list[str]]) -> bool:
    """Return whether the lines match; `...` stands for any number of lines."""
    if not wanted:
        return not seen
    if wanted[0] == [REST]:
        return any(is_shown(wanted[1:], seen[skipped:]) for skipped in range(len(seen) + 1))
    return bool(seen) and wanted[0] == seen[0] and is_shown(wanted[1:], seen[1:])


class Session(Bench):
    """A bench that follows sections of a page in a folder of docs/examples."""

    def section(self, page: str, *headings: str) -> Iterator[Command]:
        """Yield the commands of these sections, and follow each after it was yielded."""
        for heading in headings:
            for command in commands(page, heading):
                yield command
                self.follow(command)

    def follow(self, command: Command) -> None:
        line = self.said(command.line)
        if setting := EXPORT.match(line):
            self.environment[setting[1]] = setting[2]
        elif BESIDE.search(line) and FAILED not in command.shown:
            self.start_up(line, command.shown, LISTENS if "penstock serve" in line else READY)
        elif READ_ONLY.search(line):
            self._look(line, alike(command.shown))
        else:
            self.must_show(command)

    def must_show(self, command: Command) -> None:
        """Run a command to its end and compare its output; this includes a `penstock up` that fails to start."""
        line = self.said(command.line)
        seen, wanted = self._see(line, command.shown), alike(command.shown)
        assert is_shown(wanted, seen), (line, seen, wanted)

    def _look(self, line: str, wanted: list[list[str]]) -> None:
        seen: list[list[str]] = []

        def shows() -> bool:
            seen[:] = alike(self.terminal(line))
            return is_shown(wanted, seen)

        try:
            eventually(shows, PATIENCE_S, pause_s=RETRY_S)
        except AssertionError:
            raise AssertionError((line, seen, wanted)) from None

    def _see(self, line: str, shown: str) -> list[list[str]]:
        asked = ASKED.search(shown)
        return alike(self.answer(line, asked[1]) if asked else self.terminal(line))

    def terminal(self, line: str) -> str:
        """Return both outputs of a command without the log, and its exit status unless that is 0."""
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        return LOG.sub("", done.stdout) + (f"{FAILED}{done.returncode})\n" if done.returncode else "")

    def answer(self, line: str, typed: str) -> str:
        """Run a command at a real terminal and type an answer to its question, which the terminal echoes."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            ["bash", "-c", line], cwd=self.folder, env=self.environment, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True, preexec_fn=partial(die_with_parent, os.getpid()),
        ) as process:  # fmt: skip
            os.close(theirs)
            screen, has_typed = b"", False
            try:
                while chunk := os.read(ours, 65536):
                    screen += chunk
                    if screen.endswith(PROMPT) and not has_typed:
                        has_typed = bool(os.write(ours, typed.encode() + b"\n"))
            except OSError:  # EIO: the other side is closed
                pass
            finally:
                os.close(ours)
            process.wait(PATIENCE_S)
        lines = (line for line in screen.decode().splitlines() if BAR not in line)
        return "\n".join(ESCAPES.sub("", line) for line in lines)
