"""`penstock rqp send` as a process beside the edges of a test."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.live import PATIENCE_S
from tests.servers import Server

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-P", "-m", "services.cli.main", "rqp", "send")


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit code, what it told programs, and its complaint as programs get it."""

    code: int
    told: dict[str, Any]
    complaint: dict[str, Any]


class SendCommand:
    """Begins within `async with`; what waits still is killed at its end."""

    def __init__(self, server: Server, *arguments: str) -> None:
        self._arguments = ("--store", server.url, "--json", *arguments)

    async def __aenter__(self) -> SendCommand:
        foreign = ("PENSTOCK_", "REDIS_URL")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self.process = await asyncio.create_subprocess_exec(
            *(*PROGRAM, *self._arguments),
            env={**environment, "PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    @property
    def waits(self) -> bool:
        return self.process.returncode is None

    async def ended(self) -> Ended:
        async with asyncio.timeout(PATIENCE_S):
            out, err = await self.process.communicate()
        assert self.process.returncode is not None
        assert b"Traceback" not in err, err.decode()
        return Ended(
            self.process.returncode,
            json.loads(out) if out else {},
            json.loads(err.splitlines()[-1]) if err else {},
        )


async def sent(server: Server, *arguments: str) -> Ended:
    async with SendCommand(server, *arguments) as command:
        return await command.ended()
