"""Test /metrics, /healthz and /readyz."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from pathlib import Path

import aiohttp
import pytest

from services.kit.config.layers import SettingsError
from services.kit.config.settings import HealthSettings, MovableHealthSettings
from services.kit.edge import Page
from services.kit.process.health import HealthServer, HealthSources
from services.kit.readiness import Readiness
from tests.kit.harness import Program, eventually
from tests.live import until


async def test_health_pages_report_their_sources() -> None:
    faults: dict[str, str | None] = {"unready": None, "stuck": None}
    readiness = Readiness(store=lambda: faults["unready"])
    answers = HealthSources(lambda: b"penstock_ready 1\n", readiness, lambda: faults["stuck"])
    server = HealthServer(HealthSettings(port=0), answers)
    host, port = await server.start()

    async def page(path: str) -> tuple[int, str]:
        async with session.get(f"http://{host}:{port}{path}") as response:
            return response.status, await response.text()

    async with aiohttp.ClientSession() as session:
        assert await page("/metrics") == (200, "penstock_ready 1\n")
        assert await page("/healthz") == (200, "ok\n")
        assert await page("/readyz") == (200, "ok\n")
        faults["unready"] = "the store is away"
        assert await page("/readyz") == (503, "store: the store is away\n")
        assert await page("/healthz") == (200, "ok\n")
        faults["stuck"] = "worker 1: silent for 20 s"
        assert await page("/healthz") == (503, "worker 1: silent for 20 s\n")
        assert (await page("/nothing"))[0] == 404
    with pytest.raises(SettingsError, match=rf"cannot listen on {host} port {port}: "):
        await HealthServer(HealthSettings(port=port), answers).start()
    moved = HealthServer(MovableHealthSettings(port=port), answers)
    assert (await moved.start())[1] != port
    await moved.close()
    await server.close()


async def test_proxy_header_is_refused_with_its_own_reason(caplog: pytest.LogCaptureFixture) -> None:
    server = HealthServer(HealthSettings(port=0), HealthSources(bytes, Readiness(), lambda: None))
    _, port = await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"PROXY TCP4 192.0.2.7 127.0.0.1 40000 9161\r\nGET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await reader.read() == b""
    writer.close()
    await server.close()
    (record,) = (vars(each) for each in caplog.records if vars(each).get("reason") == "proxy_header")
    assert "a PROXY protocol header (version 1)" in record["detail"]
    assert (record["listener"], record["peer"].rpartition(":")[0]) == ("health", "127.0.0.1")


async def test_proxy_header_of_a_disconnected_client_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    server = HealthServer(HealthSettings(port=0), HealthSources(bytes, Readiness(), lambda: None))
    _, port = await server.start()
    with socket.create_connection(
        ("127.0.0.1", port)
    ) as client:  # no connection is accepted before the next await
        client.sendall(b"PROXY UNKNOWN\r\n")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset
    try:
        await until(lambda: any(vars(each).get("reason") == "proxy_header" for each in caplog.records))
    finally:
        await server.close()
    (record,) = (vars(each) for each in caplog.records if "reason" in vars(each))
    assert record["peer"] == "unknown:0"


@pytest.mark.parametrize(
    ("request_", "status"), [(b"NONSENSE\r\n\r\n", b"400"), (b"GET /readyz HTTP/1.0\r\n\r\n", b"200")]
)
async def test_responses_name_no_library(request_: bytes, status: bytes) -> None:
    server = HealthServer(HealthSettings(port=0), HealthSources(bytes, Readiness(), lambda: None))
    _, port = await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_)
    answer = await reader.read()
    writer.close()
    await server.close()
    assert answer.split()[1] == status
    assert not any(word in answer.lower() for word in (b"aiohttp", b"python", b"nonsense"))


async def test_scrape_refreshes_in_the_loop_and_renders_in_a_thread() -> None:
    """Check that a scrape refreshes in the loop and renders in a thread, one at a time."""
    steps: list[tuple[str, bool]] = []

    def step(what: str) -> None:
        steps.append((what, threading.current_thread() is threading.main_thread()))

    def write() -> bytes:
        step("written")
        return b"text"

    answers = HealthSources(write, Readiness(), lambda: None, lambda: step("freshened"))
    server = HealthServer(HealthSettings(port=0), answers)
    host, port = await server.start()
    async with aiohttp.ClientSession() as session:

        async def scrape() -> str:
            async with session.get(f"http://{host}:{port}/metrics") as response:
                return await response.text()

        assert await asyncio.gather(*(scrape() for _ in range(5))) == ["text"] * 5
    assert steps == [("freshened", True), ("written", False)] * 5
    await server.close()


async def test_wildcard_address_accepts_both_families() -> None:
    """Check that a wildcard address accepts both families.

    docs/chart.md: kubelets probe a dual-stack pod by its first family, which may be either.
    """
    server = HealthServer(HealthSettings(host="::", port=0), HealthSources(bytes, Readiness(), lambda: None))
    host, port = await server.start()
    assert host == "::"
    async with aiohttp.ClientSession() as session:
        for address in ("127.0.0.1", "[::1]"):
            async with session.get(f"http://{address}:{port}/readyz") as response:
                assert response.status == 200, address
    await server.close()


async def test_edge_can_add_pages() -> None:
    pages: dict[str, Page] = {}
    document = {"number": 1}
    server = HealthServer(HealthSettings(port=0), HealthSources(bytes, Readiness(), lambda: None), pages)
    host, port = await server.start()
    async with aiohttp.ClientSession() as session:
        assert (await session.get(f"http://{host}:{port}/echo")).status == 404
        pages["/echo"] = lambda: document
        for document["number"] in (2, 3):
            async with session.get(f"http://{host}:{port}/echo") as response:
                assert response.status == 200
                assert response.content_type == "application/json"
                assert await response.json() == document
        assert (await session.get(f"http://{host}:{port}/echo/more")).status == 404
        assert (await session.post(f"http://{host}:{port}/echo")).status == 405
    await server.close()


def test_process_serves_its_pages_and_readiness(tmp_path: Path) -> None:
    flag = tmp_path / "away"
    flag.touch()
    with Program(f"edges.echo.unready_while={flag}") as program:
        program.event("started")
        status, text = program.page("/echo")
        assert (status, json.loads(text)) == (200, {"frame_timeout_s": 30.0})
        assert program.page("/readyz") == (503, "flag: the flag is up\n")
        assert program.page("/healthz") == (200, "ok\n")
        assert program.samples()['penstock_ready{edge="echo"}'] == 0
        flag.unlink()
        assert eventually(lambda: program.page("/readyz")[0] == 200)
        assert program.samples()['penstock_ready{edge="echo"}'] == 1
