"""Test how long ending processes wait for a collector whose name lookup hangs."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from services.kit.config.settings import TracingSettings
from services.kit.tracing import tracing
from services.store.model.trace_context import fresh
from services.store.tracing.spans import Kind, Span
from tests.cli.shell import PATIENCE_S, ended
from tests.live import set_up, until
from tests.servers import PROGRAMS, Server
from tests.silent import NameServer, on_silent_machine
from tests.tracing.pretenders import listening, request
from tests.tracing.programs import TmqProgram
from tests.tracing.stores import traced_store

NAME = "collector.example"  # the machine's own patience with its name server is minutes


class OwnServer(Server):
    """A store on a machine with a silent name server."""

    async def __aenter__(self) -> OwnServer:
        self.start()
        await set_up(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end()


def own_server(folder: Path) -> OwnServer:
    return OwnServer(next(iter(PROGRAMS)), folder / "store")


def test_name_lookup_counts_towards_the_request_timeout(tmp_path: Path) -> None:
    """Spans are lost and counted until the name is resolved. Only one lookup waits at a time."""

    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while await request(reader):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()

    async def scenario(names: NameServer) -> None:
        async with own_server(tmp_path) as server, listening(answering) as address:
            endpoint = address.replace("127.0.0.1", NAME)
            async with traced_store(server.url, endpoint, timeout_s=0.1, batch=1) as store:
                queue = await store.queue("q")
                await store.put(queue, b"one", b"two", b"three")
                await until(lambda: store.counted("failed") == 3)
                assert names.asked == {NAME}
                assert sum(each.name == "resolver" for each in threading.enumerate()) == 1
                names.speak(**{NAME: "127.0.0.1"})
                await until(lambda: not any(each.name == "resolver" for each in threading.enumerate()))
                await store.put(queue, b"four")
                await until(lambda: store.counted("exported") == 1)

    on_silent_machine(scenario, tmp_path)


def test_command_ends_during_a_hanging_lookup(tmp_path: Path) -> None:
    """Also if a request may take an hour."""

    async def scenario(names: NameServer) -> None:
        async with own_server(tmp_path) as server:
            settings = (f"tracing.endpoint=http://{NAME}:4318", "tracing.timeout_s=3600")
            said = [part for setting in settings for part in ("--set", setting)]
            for asked in (("queue", "create", "orders"), ("put", "orders", "a pump")):
                done = ended([*asked, "--store", server.url, *said], tmp_path, {**os.environ}, b"")
                assert done.code == 0, done.err
            await until(lambda: names.asked == {NAME})

    on_silent_machine(scenario, tmp_path)


def test_edge_ends_during_a_hanging_lookup(tmp_path: Path) -> None:
    async def scenario(names: NameServer) -> None:
        settings = (f"tracing.endpoint=http://{NAME}:4318", "tracing.timeout_s=3600")
        async with own_server(tmp_path) as server, TmqProgram(server.url, tmp_path, *settings) as edge:
            client = await edge.client()
            await client.put(await client.queue(b"orders"), b"a pump")
            await until(lambda: NAME in names.asked)
            assert await edge.stop() == 0

    on_silent_machine(scenario, tmp_path)


async def test_forced_exit_does_not_wait_for_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second signal ends the edge; waiting spans are dropped and counted."""
    monkeypatch.setattr("services.kit.tracing.recorder.FLUSH_TIMEOUT_S", 3600.0)
    heard = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read(1)
        heard.set()
        await asyncio.Event().wait()

    async with listening(silent) as endpoint:
        recorder = tracing(TracingSettings(endpoint=endpoint, timeout_s=3600, interval_s=0.01), "test")
        assert recorder is not None
        recorder.start()
        recorder.record(Span("a span", Kind.INTERNAL, fresh(), None, {}).end())
        await heard.wait()
        hurries = asyncio.Event()
        ending = asyncio.create_task(recorder.close(hurries.is_set))
        hurries.set()
        async with asyncio.timeout(PATIENCE_S):
            await ending
