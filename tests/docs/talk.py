"""Follow several `nc` sessions at a time: input and output, in the order of each session's block.

The blocks do not say how their lines interleave. Their contents do: a session waits for a MESSAGE only once another
session has sent its body, and types nothing until the message has arrived.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter, deque
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from services.system.pdeathsig import die_with_parent
from tests.cli.shell import PATIENCE_S
from tests.docs.bench import Bench, Command
from tests.servers import eventually

TALKS = re.compile(r"^(nc|openssl s_client) [^|]*$")
TYPED = re.compile(r"^(SEND|SUBSCRIBE|UNSUBSCRIBE|PING|QUIT)\b", re.I)
MESSAGE = re.compile(r"^MESSAGE \d+ ([^\\]*)")  # the body up to its first escaped byte


class Talk:
    """One client and its block."""

    def __init__(self, command: Command, bench: Bench, log: Path, since: int = 0) -> None:
        """Start the client. `since` is the number of earlier messages, which it does not receive."""
        self._line, self._log, self._since = command.line, log, since
        self._steps = deque(command.shown.splitlines())
        self._taken: Counter[str] = Counter()
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                f"exec {command.line}", shell=True, cwd=bench.folder, env=bench.environment, stdin=subprocess.PIPE,
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )  # fmt: skip

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def goes_on(self, sent: list[str]) -> bool:
        """Type at most one line, and wait for its reply. Return False if other sessions must act first."""
        has_typed = has_moved = False
        while self._steps and not self._waits(self._steps[0], sent):
            line = self._steps[0]
            if TYPED.match(line):
                if has_typed:
                    break
                has_typed = True
                self._type(line)
                if line.startswith("SEND "):
                    sent.append(line)
            else:
                self._wait_for(line)
            self._steps.popleft()
            has_moved = True
        return has_moved

    def _wait_for(self, line: str) -> None:
        try:
            eventually(lambda: self._unread()[line] > 0, PATIENCE_S)
        except AssertionError:
            raise AssertionError((self._line, line, self._log.read_text())) from None
        self._taken[line] += 1

    def _waits(self, line: str, sent: list[str]) -> bool:
        body = MESSAGE.match(line)
        return body is not None and not any(body[1] in each for each in sent[self._since :])

    def _type(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def _unread(self) -> Counter[str]:
        whole = self._log.read_text().rpartition("\n")[0]
        return Counter(whole.splitlines()) - self._taken

    def end(self) -> None:
        """Check that the client has received everything in the block, and nothing else."""
        assert not self._steps, (self._line, self._steps, self._log.read_text())
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        assert not self._unread(), (self._line, self._unread())

    def clear(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


def follow(bench: Bench, commands: Iterable[Command]) -> None:
    """Follow all commands in order; sessions continue while other commands run."""
    talks: list[Talk] = []
    sent: list[str] = []
    try:
        for number, command in enumerate(commands):
            if TALKS.match(command.line):
                talks.append(Talk(command, bench, bench.folder / f"talk-{number}", len(sent)))
            else:
                bench.follow(command)
                sent.append(command.line)
            while any(talk.goes_on(sent) for talk in talks):
                pass
        for talk in talks:
            talk.end()
    finally:
        for talk in talks:
            talk.clear()
