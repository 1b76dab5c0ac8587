"""Test changes by others between the check of an ETag and the change (docs/console.md, Changes)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.console.live_console import LiveConsole, Reply
from tests.live import until
from tests.proxy import Proxy
from tests.servers import Server

DELETE = b"ps1_delete"


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with Proxy(server.port) as proxy:
        yield proxy


@pytest.fixture
async def slow(proxy: Proxy) -> AsyncIterator[LiveConsole]:
    """Yield a console whose connection to the store is proxied; `orders` has a message."""
    async with LiveConsole(proxy.url) as console:
        await console.fill(await console.declare("orders"), b"a")
        yield console


async def _held(console: LiveConsole, proxy: Proxy, headers: dict[str, str]) -> asyncio.Task[Reply]:
    """Start a deletion, and hold it back after the check of the ETag."""
    proxy.keep(DELETE)
    deleting = asyncio.create_task(console.ask("DELETE", "/queues/orders", headers=headers))
    await until(lambda: proxy.held)
    return deleting


async def test_changed_queue_is_not_deleted(slow: LiveConsole, proxy: Proxy) -> None:
    deleting = await _held(slow, proxy, await slow.etag("/queues/orders"))
    await slow.declare("orders", replace=True, paused=True)
    proxy.let_go()
    assert (await deleting).label == "precondition_failed"
    assert (await slow.stats("orders"))["ready"] == 1


async def test_queue_declared_again_unchanged_is_deleted(slow: LiveConsole, proxy: Proxy) -> None:
    deleting = await _held(slow, proxy, await slow.etag("/queues/orders"))
    await slow.declare("orders", replace=True)
    proxy.let_go()
    assert (await deleting).document == {"messages": 1}
    assert (await slow.get("/queues/orders")).status == 404


async def test_lost_response_to_a_deletion_leaves_no_name(slow: LiveConsole, proxy: Proxy) -> None:
    """Check that a deletion without a response frees the ID, which would stay taken by a queue that is in no list."""
    await slow.declare("orders", replace=True, bindings={"rqpMca": {"queueId": 77}})
    proxy.lose_replies_to = DELETE
    reply = await slow.ask("DELETE", "/queues/orders", headers=await slow.etag("/queues/orders"))
    proxy.lose_replies_to = b""
    assert (reply.status, proxy.lost) == (200, 1)
    assert (await slow.get("/queues/orders")).status == 404
    await slow.declare("others", bindings={"rqpMca": {"queueId": 77}})


async def test_any_etag(slow: LiveConsole, proxy: Proxy) -> None:
    deleting = await _held(slow, proxy, {"If-Match": "*"})
    await slow.declare("orders", replace=True, paused=True)
    proxy.let_go()
    assert (await deleting).status == 200
