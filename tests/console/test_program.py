"""The console as a program of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from services.system.pdeathsig import die_with_parent
from tests.console.local import HEADERS, TOKEN, keep
from tests.kit.authority import Authority
from tests.live import until
from tests.program import ROOT
from tests.servers import Server

PATIENCE_S = 60.0


class Program:
    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self._log = log

    def events(self, action: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self._log.read_text().splitlines() if line.endswith("}")]
        return [line for line in lines if line.get("action") == action]

    def url(self, action: str = "listening", scheme: str = "http") -> str:
        event = self.events(action)[0]
        return f"{scheme}://{event['host']}:{event['port']}"

    async def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            return await self.process.wait()


def _command(*settings: str) -> list[str]:
    pairs = [word for each in ("health.port=0", "console.port=0", *settings) for word in ("--set", each)]
    return [sys.executable, "-m", "services.console", *pairs]


@asynccontextmanager
async def program(url: str, folder: Path, *settings: str) -> AsyncIterator[Program]:
    log = folder / "console.log"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *_command(*settings),
            cwd=ROOT,
            env={
                **os.environ,
                "PENSTOCK_STORE__URL": url,
                "PENSTOCK_STORE__DATA_DIR": str(keep(folder / "data")),
            },
            stdout=file,
            stderr=file,
            start_new_session=True,
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
    found = Program(process, log)
    try:
        await until(lambda: found.process.returncode is not None or found.events("started"))
        assert found.process.returncode is None, log.read_text()
        yield found
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_it_serves_until_it_is_told_to_end(server: Server, tmp_path: Path) -> None:
    async with program(server.url, tmp_path) as console, aiohttp.ClientSession(headers=HEADERS) as session:

        async def ready() -> bool:
            async with session.get(f"{console.url()}/readyz") as response:
                return response.status == 200

        await until(ready)
        async with session.get(f"{console.url()}/api/v1/overview") as response:
            assert (await response.json())["totals"]["queues"] == 0
        said = (tmp_path / "console.log").read_text()
        assert f"console: {console.url()}/ (token in {tmp_path}/data/console.token)\n" in said
        assert TOKEN not in said  # this is no terminal
        async with session.get(f"{console.url('health_listening')}/metrics") as response:
            text = await response.text()
        assert 'penstock_console_requests_total{edge="console",method="GET",status="200"}' in text
        assert 'penstock_ready{edge="console"} 1.0' in text
        async with session.get(f"{console.url()}/api/v1/events") as response:
            assert (await response.content.readline()).startswith(b"retry")
            assert await console.end() == 0


async def test_without_a_store_it_says_so(tmp_path: Path) -> None:
    async with (
        program("redis://127.0.0.1:1", tmp_path) as console,
        aiohttp.ClientSession(headers=HEADERS) as session,
    ):
        async with session.get(f"{console.url()}/healthz") as response:
            assert response.status == 200
        async with session.get(f"{console.url()}/readyz") as response:
            assert response.status == 503
            assert "127.0.0.1" not in await response.text()
        async with session.get(f"{console.url()}/api/v1/queues") as response:
            assert (response.status, (await response.json(content_type=None))["label"]) == (
                503,
                "store_unavailable",
            )
        assert await console.end() == 0


async def test_over_tls(server: Server, tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "127.0.0.1")
    settings = [f"console.tls.{name}={file}" for name, file in authority.listener().items()]
    async with (
        program(server.url, tmp_path, *settings) as console,
        aiohttp.ClientSession(headers=HEADERS) as session,
    ):
        address = f"{console.url(scheme='https')}/api/v1/me"
        async with session.get(address, ssl=authority.client()) as response:
            assert (await response.json())["who"] == "local"
        authority.certify_server("renewed.example")
        trusted = authority.client()

        async def renewed() -> bool:
            return "renewed.example" in await asyncio.to_thread(_names, console.url(), trusted)

        await until(renewed)


def _names(url: str, trusted: ssl.SSLContext) -> list[str]:
    """What the certificate says."""
    host, _, port = url.removeprefix("http://").partition(":")
    with (
        socket.create_connection((host, int(port))) as plain,
        trusted.wrap_socket(plain, server_hostname=host) as wrapped,
    ):
        certificate = wrapped.getpeercert()
        assert certificate is not None
        return [str(value) for _, value in certificate["subjectAltName"]]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("console.host=0.0.0.0",), "say console.tokens or console.proxy"),
        (("console.nonsense=1",), "console.nonsense: unknown"),
        (("console.tokens=[{name: a, role: view, file: /nowhere}]",), "/nowhere"),
        (("console.tls.certificate=/nowhere", "console.tls.key=/nowhere"), "/nowhere"),
    ],
)
def test_what_it_cannot_use_is_told_in_one_line(
    server: Server, settings: tuple[str, ...], words: str
) -> None:
    done = subprocess.run(
        _command(*settings),
        cwd=ROOT,
        env={**os.environ, "PENSTOCK_STORE__URL": "redis://127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(told) == 1, done.stderr
    assert words in told[0]
