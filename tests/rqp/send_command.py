"""`penstock rqp send` as a process beside the edges of a test: forked, at a tenth of an interpreter's start time."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn

from tests.cli.shell import be_a_command
from tests.live import until
from tests.servers import Server

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit code, the JSON output and the JSON error of a command."""

    code: int
    output: dict[str, Any]
    complaint: dict[str, Any]


class SendCommand:
    """A command that starts within `async with` and is killed at its end if it still waits."""

    def __init__(self, server: Server, *arguments: str) -> None:
        self._arguments = ("--store", server.url, "--json", *arguments)
        self._status: int | None = None

    async def __aenter__(self) -> SendCommand:
        foreign = ("PENSTOCK_", "REDIS_URL")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self._files = [TemporaryFile() for _ in range(3)]  # noqa: SIM115
        self._child = os.fork()
        if not self._child:
            self._be_the_command({**environment, "PYTHONPATH": str(ROOT)})
        return self

    def _be_the_command(self, environment: dict[str, str]) -> NoReturn:
        """Run as the child, which keeps none of this process's connections open."""
        status = 99
        try:
            streams = [file.fileno() for file in self._files]
            for number, fd in enumerate(streams):
                os.dup2(fd, number)
            os.closerange(3, 1 << 16)
            signal.set_wakeup_fd(-1)
            status = be_a_command(["rqp", "send", *self._arguments], ROOT, environment, [0, 1, 2])
        finally:
            os._exit(status)

    async def __aexit__(self, *_: object) -> None:
        if self.waits:
            os.kill(self._child, signal.SIGKILL)
            await until(lambda: not self.waits)
        for file in self._files:
            file.close()

    @property
    def waits(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self._child, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status is None

    async def ended(self) -> Ended:
        await until(lambda: not self.waits)
        assert self._status is not None
        _, out, err = (os.pread(file.fileno(), 1 << 20, 0) for file in self._files)
        assert b"Traceback" not in err, err.decode()
        return Ended(
            self._status,
            json.loads(out) if out else {},
            json.loads(err.splitlines()[-1]) if err else {},
        )


async def sent(server: Server, *arguments: str) -> Ended:
    async with SendCommand(server, *arguments) as command:
        return await command.ended()
