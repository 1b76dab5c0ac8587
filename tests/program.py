"""An edge as a separate program: `python -m services.<edge>`, with its log and its HTTP pages."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from services.system.pdeathsig import die_with_parent
from tests.live import until
from tests.plain_client import PATIENCE_S, PlainClient

ROOT = Path(__file__).parents[1]
SECTIONS = ("drain.", "limits.", "log.", "tracing.")  # settings outside the edge's section
ClientT = TypeVar("ClientT", bound=PlainClient)
Samples = dict[str, float]  # by name with labels, as in /metrics


class EdgeProgram:
    """An edge that runs within `async with`. `settings` as for `--set`, in the edge's section unless they name one."""

    edge: str  # its name: `python -m services.<edge>`
    listeners: tuple[str, ...]  # names of their settings
    tree = ROOT  # source tree of the program

    def __init__(self, url: str, directory: Path, *settings: str, workers: int = 1) -> None:
        self._url = url
        self._log = directory / f"edge-{id(self):x}.log"
        said = (*self.listeners, *settings)
        own = [f"edges.{self.edge}.{setting}" for setting in said if not setting.startswith(SECTIONS)]
        others = [setting for setting in settings if setting.startswith(SECTIONS)]
        pairs = [part for setting in ("health.port=0", *own, *others) for part in ("--set", setting)]
        self._command = [sys.executable, "-m", f"services.{self.edge}", "--workers", str(workers), *pairs]
        self._workers = workers
        self._clients: list[PlainClient] = []

    async def __aenter__(self) -> Self:
        """Start the program and wait until it is ready."""
        environment = {**os.environ, "PENSTOCK_STORE__URL": self._url}
        with self._log.open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self._command,
                cwd=self.tree,
                env=environment,
                stderr=log,
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )
        await until(lambda: self.has_ended or self._has_begun())
        assert not self.has_ended, self.text()
        await until(self.is_ready)
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        if not self.has_ended:
            self.process.kill()  # its workers end with it
        await self.process.wait()

    def _has_begun(self) -> bool:
        return len(self.events("started")) >= self._workers and bool(self.events("health_listening"))

    @property
    def has_ended(self) -> bool:
        return self.process.returncode is not None

    async def stop(self) -> int:
        """Send SIGTERM and return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return await self.ended()

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            return await self.process.wait()

    def adopt(self, client: ClientT) -> ClientT:
        """Register a client to close with the edge."""
        self._clients.append(client)
        return client

    # log

    def text(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def events(self, action: str, **fields: object) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.text().splitlines(keepends=True) if line.endswith("}\n")]
        return [
            line
            for line in lines
            if line.get("action") == action and all(line.get(name) == value for name, value in fields.items())
        ]

    def place(self, listener: str) -> tuple[str, int]:
        event = self.events("listening", listener=listener)[0]
        return event["host"], event["port"]

    # HTTP pages

    async def page(self, path: str) -> tuple[int, str]:
        """Return status and text of a page."""
        event = self.events("health_listening")[0]
        reader, writer = await asyncio.open_connection(event["host"], event["port"])
        try:
            writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            async with asyncio.timeout(PATIENCE_S):
                head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        finally:
            writer.close()
        return int(head.split()[1]), body

    async def is_ready(self) -> bool:
        try:
            return (await self.page("/readyz"))[0] == 200
        except OSError:
            return False

    async def samples(self) -> Samples:
        lines = [line for line in (await self.page("/metrics"))[1].splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    async def sample(self, name: str, **labels: str) -> float:
        """Return the sum over all series with these labels."""
        wanted = {f'edge="{self.edge}"', *(f'{label}="{value}"' for label, value in labels.items())}
        found = [
            value
            for key, value in (await self.samples()).items()
            if key.partition("{")[0] == name and wanted <= set(key.partition("{")[2].rstrip("}").split(","))
        ]
        return sum(found)
