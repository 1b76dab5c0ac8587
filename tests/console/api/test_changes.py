"""What somebody else changes between a look and the change that goes by it (docs/console.md, Changes)."""

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
    """Its way to the store is the proxy's; `orders` has a message."""
    async with LiveConsole(proxy.url) as console:
        await console.fill(await console.declare("orders"), b"a")
        yield console


async def _held(console: LiveConsole, proxy: Proxy, headers: dict[str, str]) -> asyncio.Task[Reply]:
    """A deletion that has looked, and whose change is still on its way."""
    proxy.keep(DELETE)
    deleting = asyncio.create_task(console.ask("DELETE", "/queues/orders", headers=headers))
    await until(lambda: proxy.held)
    return deleting


async def test_a_queue_that_was_changed_is_not_deleted(slow: LiveConsole, proxy: Proxy) -> None:
    deleting = await _held(slow, proxy, await slow.etag("/queues/orders"))
    await slow.declare("orders", replace=True, paused=True)
    proxy.let_go()
    assert (await deleting).label == "precondition_failed"
    assert (await slow.stats("orders"))["ready"] == 1


async def test_a_queue_that_was_declared_as_it_was_is_deleted(slow: LiveConsole, proxy: Proxy) -> None:
    deleting = await _held(slow, proxy, await slow.etag("/queues/orders"))
    await slow.declare("orders", replace=True)
    proxy.let_go()
    assert (await deleting).document == {"messages": 1}
    assert (await slow.get("/queues/orders")).status == 404


async def test_an_answer_that_is_lost_leaves_no_name_behind(slow: LiveConsole, proxy: Proxy) -> None:
    """Nobody could delete it any more: it is in no list, and its number would stay taken."""
    await slow.declare("orders", replace=True, bindings={"rqpMca": {"queueId": 77}})
    proxy.lose_replies_to = DELETE
    reply = await slow.ask("DELETE", "/queues/orders", headers=await slow.etag("/queues/orders"))
    proxy.lose_replies_to = b""
    assert (reply.status, proxy.lost) == (200, 1)
    assert (await slow.get("/queues/orders")).status == 404
    await slow.declare("others", bindings={"rqpMca": {"queueId": 77}})


async def test_whatever_there_is(slow: LiveConsole, proxy: Proxy) -> None:
    deleting = await _held(slow, proxy, {"If-Match": "*"})
    await slow.declare("orders", replace=True, paused=True)
    proxy.let_go()
    assert (await deleting).status == 200
