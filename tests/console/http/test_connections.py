"""Test limits and timeouts of connections (docs/console.md, Limits)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.console.http import bodies
from tests.console.live_console import LiveConsole
from tests.console.local import LINE
from tests.kit.authority import Authority
from tests.live import PATIENCE_S, until
from tests.servers import Server

REFUSED = "penstock_refusals_total"
IN_PIECES = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
AT_ONCE = b"GET /vendor/uplot.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = (
    b"POST /api/v1/queues/orders/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    + LINE
)
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def _connected(
    console: LiveConsole, number: int = 1, tls: ssl.SSLContext | None = None
) -> AsyncIterator[list[Line]]:
    lines = [await asyncio.open_connection(*console.place, ssl=tls) for _ in range(number)]
    try:
        yield lines
    finally:
        for _, writer in lines:
            writer.close()


async def _is_closed(line: Line) -> bool:
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await line[0].read() == b""
    except ConnectionError:
        return True


async def _answer(line: Line, octets: bytes = HEAD + b"\r\n") -> bytes:
    line[1].write(octets)
    return (await line[0].readline()).rstrip()


async def test_connections_over_the_limit_are_closed(server: Server) -> None:
    async with LiveConsole(server.url, max_connections=3) as console:
        async with _connected(console, 3) as lines:
            for line in lines:
                assert await _answer(line) == b"HTTP/1.1 200 OK"
            async with _connected(console, 30) as more:
                assert all([await _is_closed(line) for line in more])
            assert console.value(REFUSED, reason="connection_limit") == 30
            refused = console.log.events("refused", reason="connection_limit")
            assert 0 < len(refused) <= 10  # for any number of attempts
            assert await _answer(lines[0], HEAD + b"\r\n")  # accepted connections stay open
        await until(lambda: _lets_in(console))


async def _lets_in(console: LiveConsole, tls: ssl.SSLContext | None = None) -> bool:
    """Return whether the console accepts a connection again."""
    try:
        async with _connected(console, tls=tls) as (line,):
            return await _answer(line) == b"HTTP/1.1 200 OK"
    except ConnectionError:
        return False


async def test_limit_per_address(server: Server) -> None:
    async with (
        LiveConsole(server.url, max_connections_per_address=2) as console,
        _connected(console, 2),
        _connected(console) as (line,),
    ):
        assert await _is_closed(line)
        assert console.value(REFUSED, reason="address_limit") == 1


async def test_default_limit_per_address(server: Server) -> None:
    async with LiveConsole(server.url) as console, _connected(console, 250), _connected(console) as (line,):
        assert await _is_closed(line)
        assert console.value(REFUSED, reason="address_limit") == 1


@pytest.mark.parametrize("octets", [b"", b"GET /", HEAD])
async def test_incomplete_request_header_times_out(server: Server, octets: bytes) -> None:
    """Check that sending a little more does not extend the timeout of a request header."""
    async with LiveConsole(server.url, idle_timeout_s=0.5) as console, _connected(console) as (line,):
        line[1].write(octets)

        async def dribble() -> None:
            while octets:
                line[1].write(b"X: y\r\n" if octets == HEAD else b"T")
                await asyncio.sleep(0.1)

        dribbling = asyncio.create_task(dribble())
        assert await _is_closed(line)
        dribbling.cancel()


async def test_idle_connection_times_out(server: Server) -> None:
    async with LiveConsole(server.url, idle_timeout_s=0.5) as console, _connected(console) as (line,):
        assert await _answer(line) == b"HTTP/1.1 200 OK"
        assert (await line[0].read()).endswith(b"ok\n")


async def test_stalled_request_body_times_out(console: LiveConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_TIMEOUT_S", 0.3)
    await console.declare("orders")
    async with _connected(console) as (line,):
        assert (
            await _answer(line, POST + b'Content-Length: 13\r\n\r\n{"bo') == b"HTTP/1.1 408 Request Timeout"
        )
        assert b'"label":"too_slow"' in await line[0].read()


def _asks(place: tuple[str, int], tls: ssl.SSLContext | None, octets: bytes) -> socket.socket:
    """Connect, send, and read nothing. Small segments leave most of the response to the console's buffers."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    sock.settimeout(PATIENCE_S)
    sock.connect(place)
    if tls is not None:
        sock = tls.wrap_socket(sock, server_hostname=place[0])
    with contextlib.suppress(ConnectionError):  # the connection may be closed before all is sent
        sock.sendall(octets)
    return sock


BRIEF = {"stream_timeout_s": 0.5}


@pytest.mark.parametrize(
    ("asked", "is_secret", "timeouts"),
    [
        pytest.param(IN_PIECES, False, BRIEF, id="in pieces"),
        pytest.param(AT_ONCE * 2000, True, BRIEF, id="again and again, tls"),
        # without TLS the kernel has buffered the whole response by then
        pytest.param(
            AT_ONCE, True, {"stream_timeout_s": 3, "idle_timeout_s": 2}, id="of whom aiohttp knows no more"
        ),
    ],
)
async def test_client_that_reads_nothing_is_disconnected(
    server: Server, tmp_path: Path, asked: bytes, is_secret: bool, timeouts: dict[str, float]
) -> None:
    """Check the timeout of a client that requests a public file and reads nothing.

    With TLS unread data wait below aiohttp, which closes an idle connection but does not track one that still waits for
    its client.
    """
    authority = Authority.create(tmp_path)
    tls = authority.client() if is_secret else None
    files = authority.listener() if is_secret else None
    async with LiveConsole(server.url, tls=files, max_connections=1, **timeouts) as console:
        asking = asyncio.create_task(asyncio.to_thread(_asks, console.place, tls, asked))
        await until(lambda: console.value(REFUSED, reason="write_timeout") == 1)
        await until(lambda: _lets_in(console, tls))
        (await asking).close()


async def test_failed_tls_handshakes_count_as_connections(server: Server, tmp_path: Path) -> None:
    files = Authority.create(tmp_path, "127.0.0.1").listener()
    async with LiveConsole(server.url, tls=files, max_connections=1) as console:
        async with _connected(console) as (first,), _connected(console) as (second,):
            assert await _is_closed(second)
            assert console.value(REFUSED, reason="connection_limit") == 1
            first[1].write(b"GET / HTTP/1.1\r\n\r\n")
            await first[0].read()
        await until(lambda: console.value(REFUSED, reason="tls_handshake") == 1)
        async with _connected(console) as (third,):  # there is room again
            third[1].write(b"nonsense\r\n")
            await third[0].read()
        await until(lambda: console.value(REFUSED, reason="tls_handshake") == 2)


async def test_proxy_protocol_header_is_refused(console: LiveConsole) -> None:
    async with _connected(console) as (line,):
        line[1].write(b"PROXY TCP4 192.0.2.7 127.0.0.1 40000 9180\r\n" + HEAD + b"\r\n")
        assert await _is_closed(line)
    assert console.value(REFUSED, reason="proxy_header") == 1
    (refused,) = console.log.events("refused", reason="proxy_header")
    assert "a PROXY protocol header (version 1)" in vars(refused)["detail"]
