"""What a collector asks for: time, a pause, another address. Edges are kept waiting by none of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from services.kit.tracing.http import retry_after_s
from tests.live import until
from tests.servers import Server
from tests.tracing.pretenders import listening, request
from tests.tracing.stores import traced_store

EMPTY = "Content-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    "said", ["HTTP/1.1 200 OK\r\nX-Why: ", "HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n"]
)
async def test_an_answer_that_dribbles(server: Server, said: str) -> None:
    """tracing.timeout_s is for all of it, and not for each octet."""

    async def dribbling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(said.encode())
        while True:
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with (
        listening(dribbling) as endpoint,
        traced_store(server.url, endpoint, timeout_s=0.3) as store,
    ):
        await store.put(await store.queue("q"), b"a pump")
        await until(lambda: store.counted("failed") == 1)


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
async def test_a_pause_that_it_asks_for_is_made(server: Server, status: str) -> None:
    asked: list[float] = []

    async def busy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await request(reader):
            asked.append(asyncio.get_running_loop().time())
            first = f"HTTP/1.1 {status}\r\nRetry-After: 1\r\n{EMPTY}"
            writer.write((first if len(asked) == 1 else f"HTTP/1.1 200 OK\r\n{EMPTY}").encode())
            await writer.drain()

    async with listening(busy) as endpoint, traced_store(server.url, endpoint, timeout_s=30) as store:
        await store.put(await store.queue("q"), b"a pump")
        await until(lambda: store.counted("exported") == 1)
        assert store.counted("failed") == 0
    first, second = asked
    assert second - first >= 0.9


async def test_a_pause_that_is_too_long_for_one_request_is_the_next_ones(server: Server) -> None:
    """What was to be sent is lost at once, and counted; nothing is sent before the time has come."""
    asked: list[float] = []

    async def busy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await request(reader):
            asked.append(asyncio.get_running_loop().time())
            first = f"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n{EMPTY}"
            writer.write((first if len(asked) == 1 else f"HTTP/1.1 200 OK\r\n{EMPTY}").encode())
            await writer.drain()

    async with listening(busy) as endpoint, traced_store(server.url, endpoint, timeout_s=0.3) as store:
        queue = await store.queue("q")
        await store.put(queue, b"one")
        await until(lambda: store.counted("failed") == 1)
        await store.put(queue, b"two")
        await until(lambda: store.counted("exported") == 1)
    first, second = asked
    assert second - first >= 0.9


def test_a_pause_as_http_says_it() -> None:
    """RFC 9110, 10.2.3; what is no pause is none."""
    soon = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3500 < retry_after_s(soon) <= 3600
    assert retry_after_s("120") == 120
    for none in (None, "", "-1", "1.5", "soon", "\u0661", "Wed, 21 Oct 2015 07:28:00 GMT"):
        assert retry_after_s(none) == 0


async def test_nobody_is_followed_elsewhere(server: Server) -> None:
    """Headers, a token perhaps, are for the collector that was named."""
    elsewhere: list[bytes] = []

    async def other(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        elsewhere.append(await reader.read(1))

    async with listening(other) as there:

        async def sending_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await request(reader):
                where = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {there}/v1/traces\r\n{EMPTY}"
                writer.write(where.encode())
                await writer.drain()

        headers = {"authorization": "Bearer of-news"}
        async with (
            listening(sending_on) as endpoint,
            traced_store(server.url, endpoint, headers=headers) as store,
        ):
            await store.put(await store.queue("q"), b"a pump")
            await until(lambda: store.counted("failed") == 1)
    assert elsewhere == []


@pytest.mark.parametrize(
    ("setting", "written", "posted"),
    [
        ("endpoint", "?key=of-mine", "/v1/traces?key=of-mine"),
        ("endpoint", "/otlp/?key=of-mine", "/otlp/v1/traces?key=of-mine"),
        ("endpoint", "/otlp/v1/traces", "/otlp/v1/traces"),
        ("traces_endpoint", "/my%2Fown/traces/", "/my%2Fown/traces/"),
        ("traces_endpoint", "", "/"),
    ],
)
async def test_traces_are_posted_to_the_path_that_opentelemetry_specifies(
    server: Server, setting: str, written: str, posted: str
) -> None:
    asked: list[bytes] = []

    async def asking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await request(reader))
        writer.write(f"HTTP/1.1 200 OK\r\nConnection: close\r\n{EMPTY}".encode())
        await writer.drain()

    async with (
        listening(asking) as endpoint,
        traced_store(server.url, None, **{setting: f"{endpoint}{written}"}) as store,
    ):
        await store.put(await store.queue("q"), b"a pump")
        await until(lambda: store.counted("exported") == 1)
    assert asked[0].startswith(f"POST {posted} HTTP/1.1\r\n".encode())
