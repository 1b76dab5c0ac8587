"""A collector that is down, slow or refuses: edges are not affected, and lost spans are counted."""

from __future__ import annotations

import asyncio
import re
import ssl
from pathlib import Path

import pytest
import trustme
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from services.kit.config.layers import SettingsError
from services.kit.config.settings import TracingSettings
from services.kit.tracing import tracing
from tests.live import until
from tests.servers import Server, free_port
from tests.tracing.collector import Collector
from tests.tracing.pretenders import listening
from tests.tracing.programs import TmqProgram
from tests.tracing.stores import traced_store


async def test_collector_outage_and_return(server: Server, tmp_path: Path) -> None:
    """Clients of a real edge are served meanwhile; later spans are exported."""
    collector = Collector(tmp_path / "collector")
    settings = (*collector.settings, "tracing.timeout_s=0.2")
    async with TmqProgram(server.url, tmp_path, *settings) as edge:
        client = await edge.client()
        mqid = await client.queue(b"orders")
        await client.put(mqid, *[b"%d" % number for number in range(50)])
        assert await client.drain(mqid) == [b"%d" % number for number in range(50)]
        await until(lambda: edge.events("collector_away"))
        assert await edge.is_ready()
        failed = await edge.sample("penstock_trace_spans_total", result="failed")
        assert failed > 0
        collector.start()
        try:
            await client.put(mqid, b"later")
            assert await client.dnq(mqid) == b"later"
            assert await client.dnq(mqid) is None
            await collector.has("settle orders")
            await until(lambda: edge.events("collector_there"))
            assert len(edge.events("collector_away")) == 1
            assert await edge.sample("penstock_trace_spans_total", result="exported") > 0
            assert await edge.stop() == 0
        finally:
            collector.stop()


async def test_collector_that_never_answers(server: Server) -> None:
    """No operation waits for it; spans beyond the queue's limit are dropped and counted."""
    heard = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read(1)
        heard.set()
        await asyncio.Event().wait()

    async with (
        listening(silent) as endpoint,
        traced_store(server.url, endpoint, queue=20, batch=10, timeout_s=600) as store,
    ):
        queue = await store.queue("q")
        await store.put(queue, *[b"%d" % number for number in range(10)])
        await heard.wait()
        await store.put(queue, *[b"%d" % number for number in range(100)])
        assert (await store.listing.stats(queue))["ready"] == 110
        assert store.counted("dropped") >= 70
        assert store.counted("exported") == 0


async def test_collector_that_refuses(server: Server) -> None:
    async def refusing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()

    async with listening(refusing) as endpoint, traced_store(server.url, endpoint) as store:
        queue = await store.queue("q")
        await store.put(queue, b"a pump")
        await until(lambda: store.counted("failed") == 1)
        assert (await store.listing.stats(queue))["ready"] == 1


async def test_headers_are_sent_with_requests(server: Server) -> None:
    """Headers are sent, and not logged."""
    asked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def asking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if not asked.done():
            asked.set_result(head)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()

    headers = {"authorization": "Bearer of-news"}
    async with (
        listening(asking) as endpoint,
        traced_store(server.url, f"{endpoint}/of/mine", headers=headers) as store,
    ):
        await store.put(await store.queue("q"), b"a pump")
        head = (await asked).decode().lower()
    assert head.startswith("post /of/mine/v1/traces http/1.1\r\n")
    assert "authorization: bearer of-news\r\n" in head
    assert "content-type: application/x-protobuf\r\n" in head


async def test_no_collector_listens(server: Server) -> None:
    async with traced_store(server.url, f"http://127.0.0.1:{free_port()}", timeout_s=0.1) as store:
        await store.put(await store.queue("q"), b"a pump")
        await until(lambda: store.counted("failed") == 1)


async def test_temporary_errors_are_retried(server: Server) -> None:
    """OTLP/HTTP: 503 is temporary; the connection is kept."""
    answers = iter(("503 Service Unavailable", "200 OK"))
    connections = 0

    async def busy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while head := await reader.readuntil(b"\r\n\r\n"):
            size = re.search(rb"(?i)content-length: (\d+)", head)
            assert size is not None
            await reader.readexactly(int(size[1]))
            writer.write(f"HTTP/1.1 {next(answers)}\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()

    async with listening(busy) as endpoint, traced_store(server.url, endpoint) as store:
        await store.put(await store.queue("q"), b"a pump")
        await until(lambda: store.counted("exported") == 1)
        assert store.counted("failed") == 0
    assert next(answers, None) is None
    assert connections == 1


async def test_partial_success_is_counted(server: Server) -> None:
    """A partial success has the number of rejected spans."""
    partly = ExportTraceServiceResponse(
        partial_success=ExportTracePartialSuccess(rejected_spans=2, error_message="too old")
    ).SerializeToString()

    async def choosy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(partly)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + partly)
        await writer.drain()

    async with listening(choosy) as endpoint, traced_store(server.url, endpoint, batch=3) as store:
        await store.put(await store.queue("q"), b"one", b"two", b"three")
        await until(lambda: store.counted("exported") + store.counted("failed") == 3)
        assert store.counted("failed") == 2


async def test_success_with_unusual_body(server: Server) -> None:
    """Check that status 200 is a success with any body, since proxies may answer (OTLP/HTTP)."""

    async def wordy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<html></html>")
        await writer.drain()

    async with listening(wordy) as endpoint, traced_store(server.url, endpoint) as store:
        await store.put(await store.queue("q"), b"a pump")
        await until(lambda: store.counted("exported") == 1)
        assert store.counted("failed") == 0


async def test_collectors_certificate_is_checked(server: Server, tmp_path: Path) -> None:
    """tracing.ca, an intermediate authority; nothing is sent to an untrusted server."""
    authority = trustme.CA().create_child_ca()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()

    async with listening(answer, context) as endpoint:
        async with traced_store(server.url, endpoint, ca=tmp_path / "ca.pem") as store:
            await store.put(await store.queue("q"), b"a pump")
            await until(lambda: store.counted("exported") == 1)
        async with traced_store(server.url, endpoint, timeout_s=0.5) as store:
            await store.put(await store.queue("r"), b"a pump")
            await until(lambda: store.counted("failed") == 1)
    with pytest.raises(SettingsError, match=r"tracing\.ca"):
        tracing(TracingSettings(endpoint="https://x", ca=tmp_path / "missing.pem"), "test")
