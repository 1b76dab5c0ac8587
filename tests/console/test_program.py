"""Test `python -m services.console`."""

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

import aiohttp

from services.system.pdeathsig import die_with_parent
from tests.console.live_console import LiveConsole
from tests.console.local import HEADERS, TOKEN, keep
from tests.kit.authority import Authority
from tests.live import until
from tests.program import ROOT
from tests.servers import Server

PATIENCE_S = 60.0


def _command(*settings: str) -> list[str]:
    pairs = [word for each in ("health.port=0", "console.port=0", *settings) for word in ("--set", each)]
    return [sys.executable, "-m", "services.console", *pairs]


@asynccontextmanager
async def program(url: str, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the console; its log is in `folder`."""
    data = str(keep(folder / "data"))
    with (folder / "console.log").open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *_command(),
            cwd=ROOT,
            env={**os.environ, "PENSTOCK_STORE__URL": url, "PENSTOCK_STORE__DATA_DIR": data},
            stdout=file,
            stderr=file,
            start_new_session=True,
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_serves_until_sigterm(server: Server, tmp_path: Path) -> None:
    log = tmp_path / "console.log"

    def url(action: str) -> str:
        """Return the address on which the process listens, or ''."""
        lines = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
        found = [f"http://{line['host']}:{line['port']}" for line in lines if line.get("action") == action]
        return found[0] if found else ""

    async with program(server.url, tmp_path) as process, aiohttp.ClientSession(headers=HEADERS) as session:
        place = await until(lambda: url("listening"))

        async def ready() -> bool:
            assert process.returncode is None, log.read_text()
            async with session.get(f"{place}/readyz") as response:
                return response.status == 200

        await until(ready)
        async with session.get(f"{place}/api/v1/overview") as response:
            assert (await response.json())["totals"]["queues"] == 0
        output = log.read_text()
        assert f"console: {place}/ (token in {tmp_path}/data/console.token)\n" in output
        assert TOKEN not in output  # standard output is not a terminal
        async with session.get(f"{await until(lambda: url('health_listening'))}/metrics") as response:
            text = await response.text()
        assert 'penstock_console_requests_total{edge="console",method="GET",status="200"}' in text
        assert 'penstock_ready{edge="console"} 1.0' in text
        async with session.get(f"{place}/api/v1/events") as response:
            assert (await response.content.readline()).startswith(b"retry")
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                assert await process.wait() == 0


async def test_without_a_store() -> None:
    async with LiveConsole("redis://127.0.0.1:1") as console:
        async with console.session.get(f"{console.base}/healthz") as response:
            assert response.status == 200
        async with console.session.get(f"{console.base}/readyz") as response:
            assert response.status == 503
            assert "127.0.0.1" not in await response.text()
        reply = await console.get("/queues")
        assert (reply.status, reply.label) == (503, "store_unavailable")


async def test_connections_over_tls_see_a_renewed_certificate(server: Server, tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "127.0.0.1")
    async with LiveConsole(server.url, tls=authority.listener()) as console:
        trusted = authority.client()
        address = f"{console.base.replace('http', 'https')}/api/v1/me"
        async with console.session.get(address, ssl=trusted) as response:
            assert (await response.json())["who"] == "local"
        authority.certify_server("renewed.example")

        async def renewed() -> bool:
            return "renewed.example" in await asyncio.to_thread(_names, console.place, trusted)

        await until(renewed)


def _names(place: tuple[str, int], trusted: ssl.SSLContext) -> list[str]:
    """Return the names in the server's certificate."""
    with (
        socket.create_connection(place) as plain,
        trusted.wrap_socket(plain, server_hostname=place[0]) as wrapped,
    ):
        certificate = wrapped.getpeercert()
        assert certificate is not None
        return [str(value) for _, value in certificate["subjectAltName"]]


def test_unusable_settings_are_reported_in_one_line() -> None:
    done = subprocess.run(
        _command("console.tls.certificate=/missing", "console.tls.key=/missing"),
        cwd=ROOT,
        env={**os.environ, "PENSTOCK_STORE__URL": "redis://127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 2
    (lines,) = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert "/missing" in lines
