"""Test the live view."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from services.console.core.console import SHOWN_JOBS
from tests.console.live_console import PATIENCE_S, Events, LiveConsole
from tests.console.local import LINE
from tests.live import until
from tests.servers import Server
from tests.stores import NewServer

FIRST = "the first token of all"


@asynccontextmanager
async def watching(console: LiveConsole) -> AsyncIterator[Events]:
    async with console.session.get(f"{console.base}/api/v1/events") as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        yield Events(response)


async def test_the_first_event_is_whole(console: LiveConsole) -> None:
    await console.declare("orders")
    await console.declare("others")
    async with watching(console) as events:
        hello = await events.next("hello")
        assert (hello["who"], hello["role"], hello["auth"], hello["refreshMs"]) == (
            "local",
            "admin",
            "token",
            100,
        )
        assert (await events.next("overview"))["totals"]["queues"] == 2
        rows = await events.next("queues")
        assert rows["whole"] is True
        assert [row["name"] for row in rows["rows"]] == ["orders", "others"]
        assert rows["rows"] == (await console.get("/queues")).items or rows["rows"][0]["rates"]["in"] is None
        assert await events.next("edges") == {"items": []}
        assert await events.next("jobs") == {"items": []}


async def test_revoked_token_ends_the_stream(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(FIRST)
    tokens = [{"name": "a", "role": "view", "file": str(file)}]
    async with LiveConsole(server.url, tokens=tokens) as console:
        await console.tools.initialise()
        headers = {"Authorization": f"Bearer {FIRST}"}
        async with console.session.get(f"{console.base}/api/v1/events", headers=headers) as response:
            events = Events(response)
            await events.next("overview")
            file.write_text(FIRST[::-1])
            async with asyncio.timeout(PATIENCE_S):
                while not response.content.at_eof():
                    await response.content.readany()
        await until(lambda: console.value("penstock_console_streams") == 0)


async def _row(events: Events, name: str, **wanted: Any) -> dict[str, Any]:
    """Return the queue's row once it has these values, from events that contain only changes."""
    while True:
        found = await events.next("queues")
        assert not found["whole"]
        for row in found["rows"]:
            if row["name"] == name and all(row[field] == value for field, value in wanted.items()):
                return dict(row)


async def test_latency_metric_excludes_the_duration_of_streams(console: LiveConsole) -> None:
    """Check that the metric has the time to the start of the stream."""
    seconds = "penstock_console_request_seconds"
    began = time.monotonic()
    async with watching(console) as events:
        took = time.monotonic() - began
        for _ in range(5):
            await events.next("overview")
    await until(lambda: console.value(f"{seconds}_count", method="GET") == 1)
    assert 0 < console.value(f"{seconds}_sum", method="GET") <= took


async def test_only_changes_are_sent(console: LiveConsole) -> None:
    orders = await console.declare("orders")
    await console.declare("others")
    async with watching(console) as events:
        await events.next("queues")
        await events.next("queues")  # rates are known from the second poll on
        await console.fill(orders, b"one")
        row = await _row(events, "orders", ready=1)
        assert row["bytes"] == 3
        later = [event for kind, event in events.seen if kind == "queues"][2:]
        assert all(row["name"] != "others" for event in later for row in event["rows"])


async def test_queues_come_and_go(console: LiveConsole) -> None:
    async with watching(console) as events:
        await events.next("queues")
        queue = await console.declare("orders")
        await _row(events, "orders")
        await console.tools.catalogue.delete(queue)
        while True:
            found = await events.next("queues")
            if found["gone"]:
                break
        assert found["gone"] == ["orders"]


async def test_jobs(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    await console.bury(queue, b"one")
    async with watching(console) as events:
        assert (await events.next("jobs"))["items"] == []
        await console.ask("POST", "/queues/orders/dead/redrive", {"all": True})
        while True:
            (job,) = (await events.next("jobs"))["items"]
            if job["state"] == "done":
                break
        assert job["moved"] == 1


async def test_running_job_is_sent_before_newer_ended_ones(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    await console.bury(queue, *(b"%d" % each for each in range(200)))
    slow = (await console.ask("POST", "/queues/orders/dead/redrive", {"all": True, "rate": 1})).document["id"]
    for _ in range(SHOWN_JOBS + 1):
        await console.job(await console.ask("POST", "/queues/orders/dead/redrive", {"ids": ["1-1"]}))
    async with watching(console) as events:
        rows = (await events.next("jobs"))["items"]
    assert (rows[0]["id"], rows[0]["state"]) == (slow, "running")
    assert len(rows) == SHOWN_JOBS
    newest = (await console.found(f"/jobs?limit={SHOWN_JOBS - 1}"))["items"]
    assert rows[1:] == newest


async def test_slow_reader_does_not_block_others(server: Server) -> None:
    """Check that slow readers skip superseded updates."""
    async with LiveConsole(server.url, stream_timeout_s=60) as console:
        for number in range(300):
            await console.declare(f"q{number:03}")
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.connect(console.place)
        slow.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n" + LINE + b"\r\n")
        async with watching(console) as events:
            first = await console.tools.catalogue.find("q000")
            await events.next("queues")
            for ready in range(1, 6):
                await console.fill(first, b"x" * 100)
                await _row(events, "q000", ready=ready)
        slow.close()


async def test_client_that_reads_nothing_is_disconnected(server: Server) -> None:
    async with LiveConsole(server.url, stream_timeout_s=0.3) as console:
        queues = [await console.declare(f"q{number:03}") for number in range(300)]
        inner = console.inside
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.connect(console.place)
        slow.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n" + LINE + b"\r\n")
        await until(lambda: inner.streams == 1)

        async def closed() -> bool:
            for queue in queues:
                await console.fill(queue, b"x")
            return inner.streams == 0

        await until(closed)
        slow.close()


async def test_limit_of_streams(server: Server) -> None:
    async with LiveConsole(server.url, max_streams=1) as console, watching(console):
        reply = await console.get("/events")
        assert (reply.status, reply.label) == (503, "too_many_streams")


async def test_last_streams_are_reserved_for_operators(server: Server) -> None:
    tokens = [
        {"name": role, "role": role, "sha256": hashlib.sha256(role.encode()).hexdigest()}
        for role in ("view", "operate", "admin")
    ]
    async with (
        LiveConsole(server.url, tokens=tokens, max_streams=10) as console,
        AsyncExitStack() as open_now,
    ):

        async def watch(token: str) -> int:
            asked = console.session.get(
                f"{console.base}/api/v1/events", headers={"Authorization": f"Bearer {token}"}
            )
            return (await open_now.enter_async_context(asked)).status

        assert [await watch("view") for _ in range(11)] == [200] * 9 + [503] * 2
        assert [await watch("operate"), await watch("admin")] == [200, 503]


async def test_disconnected_client_frees_its_stream(console: LiveConsole) -> None:
    inner = console.inside
    async with watching(console) as events:
        await events.next("hello")
        assert inner.streams == 1
    await until(lambda: inner.streams == 0)


async def test_process_stop_ends_streams(console: LiveConsole) -> None:
    async with watching(console) as events:
        await events.next("hello")
        await console.stop_taking()
        assert b"hello" not in await events.rest()


async def test_store_outage(new_server: NewServer) -> None:
    server = await new_server()
    async with LiveConsole(server.url) as console:
        await console.declare("orders")
        async with watching(console) as events:
            await events.next("queues")
            server.kill9()
            assert (await events.next("trouble"))["label"] == "store_unavailable"
            reply = await console.get("/queues/orders")
            assert (reply.status, reply.label) == (503, "store_unavailable")
            assert reply.headers["Retry-After"]
            server.restart()
            await events.next("overview")
        assert (await console.found("/queues/orders"))["name"] == "orders"


MANY = 400


async def test_hundreds_of_queues(server: Server) -> None:
    """Check that all rows are sent once, then only changes, and that all clients get the same."""
    async with LiveConsole(server.url, refresh_s=0.5) as console:
        names = [f"q{number:03}" for number in range(MANY)]
        queues = [await console.declare(name) for name in names]
        async with (
            console.session.get(f"{console.base}/api/v1/events") as one,
            console.session.get(f"{console.base}/api/v1/events") as other,
        ):
            watchers = [Events(one), Events(other)]
            for events in watchers:
                whole = await events.next("queues")
                assert [row["name"] for row in whole["rows"]] == names
            await asyncio.gather(*(events.next("queues") for events in watchers))  # rates are known now
            await console.fill(queues[7], b"one")
            for events in watchers:
                assert [row["name"] for row in (await events.next("queues"))["rows"]] == ["q007"]
        seen = [row["name"] for row in await console.every("/queues?limit=150")]
        assert seen == names

        async def counted() -> bool:
            totals = (await console.found("/overview"))["totals"]
            return bool(totals["queues"] == MANY and totals["ready"] == 1)

        await until(counted)
