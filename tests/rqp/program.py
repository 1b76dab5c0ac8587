"""An RQP edge in a separate process that can be killed: `python -m services.rqp`."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any, Self

import yaml

from services.system.pdeathsig import die_with_parent
from tests.live import PATIENCE_S, until
from tests.rqp.live import NO_CAST

ROOT = Path(__file__).parents[2]


class EdgeProgram:
    """An edge program that runs within `async with`. `settings` as they stand under `edges.rqp`."""

    def __init__(self, url: str, directory: Path, settings: dict[str, Any]) -> None:
        self._url = url
        self._log = directory / f"edge-{id(self):x}.log"
        self._file = directory / f"edge-{id(self):x}.yaml"
        listeners = {"mca": {"port": 0}}
        fields = {
            "health": {"port": 0},
            "edges": {"rqp": {"listeners": listeners, "cast": NO_CAST, **settings}},
        }
        self._file.write_text(yaml.safe_dump(fields))

    async def __aenter__(self) -> Self:
        """Return once it has started."""
        with self._log.open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "services.rqp", "--config", str(self._file)),
                cwd=ROOT,
                env={**os.environ, "PENSTOCK_STORE__URL": self._url},
                stderr=log,
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )
        await until(lambda: self.process.returncode is not None or '"started"' in self.text())
        assert self.process.returncode is None, self.text()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            await self.kill()

    def text(self) -> str:
        return self._log.read_text("utf-8", "replace")

    async def ended(self) -> int:
        """Return the exit status."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.process.wait()

    async def kill(self) -> None:
        """Send SIGKILL: it releases nothing, and its connections are reset."""
        self.process.kill()
        await self.process.wait()
