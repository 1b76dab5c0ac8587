"""The directory of running processes (docs/store.md, Processes)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator

import pytest

from services.store import Store
from services.store.model.errors import StoreUnavailable
from services.store.model.keys import RegistryKeys
from services.store.processes import presence as presence_module
from services.store.processes import rpc_server as reception_module
from services.store.processes.presence import SILENT_MS
from tests.servers import Server
from tests.store.desk import Desk, until
from tests.store.member import Member, Program, member

KEY = RegistryKeys().processes


@pytest.fixture
async def asker(desk: Desk) -> AsyncIterator[Store]:
    """Yield a store without presence in the directory."""
    yield desk.store
    assert not [one for one in await desk.store.processes.running() if one.edge == "asker"]


async def test_process_writes_its_entry(asker: Store, server: Server) -> None:
    before = await asker.now_ms()
    assert await asker.processes.running() == []
    async with member(server.url, "tmq") as (one, _), member(server.url, "rqp"):
        first, second = await asker.processes.running()
        assert (first.edge, second.edge) == ("rqp", "tmq")
        assert second.name.startswith(f"tmq-{socket.gethostname()}-")
        assert second.name.rsplit("-", 2)[1] == str(os.getpid())
        assert (second.host, second.pid) == (socket.gethostname(), os.getpid())
        assert before <= second.seen_ms <= await asker.now_ms()
        assert second.topics == {"numbers"}
        assert (second.listeners, second.health, second.unready, second.connections) == ((), None, None, 0)
        one.facts = {
            "listeners": [{"name": "ü", "address": "[::1]:80"}],
            "health": "h:1",
            "unready": "draining",
        }
        await until(lambda: _says(asker, "draining"))
        second = (await asker.processes.running())[1]
        assert (second.listeners, second.health) == ((("ü", "[::1]:80"),), "h:1")
    assert await asker.processes.running() == [], "a process that ends in order is gone at once"


async def _says(asker: Store, unready: str) -> bool:
    return [one.unready for one in await asker.processes.running()][1] == unready


async def test_topics_appear_once_questions_are_received(
    asker: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that topics appear only once questions are received, as earlier ones would be lost."""
    refused = asyncio.Event()

    @contextlib.asynccontextmanager
    async def subscribed(*_: object) -> AsyncIterator[None]:
        refused.set()
        raise OSError("not yet")
        yield

    with monkeypatch.context() as patched:
        patched.setattr(reception_module, "subscribed", subscribed)
        store = Store(server.url, "tmq", observe=Member("tmq"))
        store.start_serving()
        await refused.wait()

        async def topics() -> list[frozenset[str]]:
            return [one.topics for one in await asker.processes.running()]

        assert await until(topics) == [frozenset()]
        assert (await asker.processes.inquire("numbers", wait_s=60.0)).silent == []
    try:

        async def can_be_asked() -> bool:
            return await topics() == [frozenset({"numbers"})]

        await until(can_be_asked)
        assert len((await asker.processes.inquire("numbers", wait_s=60.0)).answers) == 1
    finally:
        await store.close()


async def test_entry_is_renewed(asker: Store, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence_module, "RENEW_S", 0.05)
    monkeypatch.setattr(presence_module, "CHECK_S", 0.02)
    async with member(server.url) as (one, _):
        (first,) = await asker.processes.running()
        one.facts = {"connections": 7}

        async def renewed() -> bool:
            (now,) = await asker.processes.running()
            return now.seen_ms > first.seen_ms and now.connections == 7

        await until(renewed)


async def test_expired_entry_is_hidden_and_removed(asker: Store, server: Server) -> None:
    """Check that the directory hides and removes entries older than half a minute, as after `kill -9`."""
    async with member(server.url, "tmq"):
        (found,) = await asker.processes.running()
        name, text = f"{found.name}0", server.call("HGET", KEY, found.name).partition(b" ")[2]
    for age_ms, seen in ((SILENT_MS - 10_000, [name]), (SILENT_MS + 1, [])):
        server.call("HSET", KEY, name, b"%d %b" % (await asker.now_ms() - age_ms, text))
        assert [one.name for one in await asker.processes.running()] == seen
    async with member(server.url):
        assert server.call("HEXISTS", KEY, name) == 0


async def test_sigterm_removes_the_entry(asker: Store, server: Server) -> None:
    program = Program(server.url, "tmq")
    try:
        await program.known(asker)
        program.signal(signal.SIGTERM)
        program.process.wait()
        assert await asker.processes.running() == []
    finally:
        program.end()


async def test_unreadable_entry_hides_no_other(asker: Store, server: Server) -> None:
    async with member(server.url):
        for value in (b"", b"nonsense", b"1e3 {}", b"%d []", b"%d {}", b"%d \xff", b"%d " + b"[" * 10_000):
            server.call("HSET", KEY, b"other \xff", value.replace(b"%d", b"%d" % await asker.now_ms()))
            assert [one.edge for one in await asker.processes.running()] == ["test"], value


async def test_failing_description_is_logged_and_retried(
    asker: Store, server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Check that an error in a description is logged, and that the entry is renewed after it."""
    monkeypatch.setattr(presence_module, "CHECK_S", 0.02)
    async with member(server.url) as (one, _):
        one.facts = {"health": object()}
        await until(lambda: "not JSON serializable" in caplog.text)
        one.facts = {"health": "h:1"}

        async def renewed() -> bool:
            return [process.health for process in await asker.processes.running()] == ["h:1"]

        await until(renewed)


async def test_entry_returns_with_the_store(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that an entry returns even if the directory was lost: processes rewrite theirs every 10 s, here sooner."""
    monkeypatch.setattr(presence_module, "RENEW_S", 0.1)
    async with Desk(own_server) as desk, member(own_server.url):
        own_server.kill9()
        with pytest.raises(StoreUnavailable):
            await desk.store.processes.running()
        own_server.restart()
        own_server.call("DEL", KEY)

        async def is_back() -> bool:
            try:
                return [one.edge for one in await desk.store.processes.running()] == ["test"]
            except StoreUnavailable:
                return False

        await until(is_back)


async def test_process_ends_while_the_store_is_unavailable(own_server: Server) -> None:
    async with Desk(own_server), member(own_server.url):
        own_server.kill9()
