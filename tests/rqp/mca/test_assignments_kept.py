"""Duration of assignments, by the store's own record (rqp_mca.md 2.3)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from protos.rqp_mca import encode_queue_request
from services.store import Queue
from services.store.pipeline.claims import Claims
from services.store.pipeline.domain import Domain
from tests.live import until
from tests.rqp.conftest import Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import Client
from tests.servers import Server


async def assigned_until(edge: LiveEdge, queue: Queue) -> int:
    """Return the end of the assignment in ms since 1970, or 0."""
    found = await edge.tools.get_domain(queue.domain).link.call("HMGET", queue.keys[1], "holder", "until")
    return int(found[1]) if found[0] else 0


async def test_message_renews_for_the_whole_ttl(server: Server, start: Start) -> None:
    """Check that a message renews for the whole ttl, also the last of several, which ask the store later."""
    edge = await start(server, mca={"reservation_ttl_s": 4.0})
    queue = await edge.numbered("orders", 1)
    client = await edge.client()
    await client.request(1)
    first = await assigned_until(edge, queue)
    await asyncio.sleep(0.05)  # the clocks have milliseconds
    await client.put(1, b"hello")

    async def is_kept() -> bool:
        return await assigned_until(edge, queue) > first

    await until(is_kept)


async def test_request_renews_the_assignment(server: Server, start: Start) -> None:
    """Check that a request renews the assignment, as any message for the queue does."""
    edge = await start(server, mca={"reservation_ttl_s": 2.0})
    queue = await edge.numbered("orders", 1)
    await edge.numbered("end", 99)
    client = await edge.client()
    await client.request(1)
    first = await assigned_until(edge, queue)
    await asyncio.sleep(0.05)  # the clocks have milliseconds

    async def is_kept() -> bool:
        assert await client.is_available(1, 99)
        return await assigned_until(edge, queue) > first

    await until(is_kept)


async def test_deferred_renewal_lasts_for_the_rest_of_the_ttl(server: Server, start: Start) -> None:
    """Check that a deferred renewal lasts for the rest of the ttl: it expires one ttl after the last message."""
    edge = await start(server, mca={"reservation_ttl_s": 12.0})
    queue = await edge.numbered("orders", 1)
    client = await edge.client()
    await client.request(1)
    first = await assigned_until(edge, queue)
    await asyncio.sleep(0.05)  # the clocks have milliseconds
    await client.put(1, b"hello")
    put_ms = time.time() * 1000

    async def is_renewed() -> bool:
        return await assigned_until(edge, queue) > first

    await until(is_renewed)  # after a quarter of it
    assert await assigned_until(edge, queue) < put_ms + 12_000 + 2_000


async def test_assignment_after_the_connection_ended_is_released(
    edge: LiveEdge, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an assignment granted after the connection ended is released."""
    queue = await edge.numbered("orders", 1)
    reserve = Claims.reserve
    asked, let_go, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def reserve_late(self: Domain, *named: Any) -> int:
        asked.set()
        await let_go.wait()
        fence = await reserve(self, *named)
        done.set()
        return fence

    monkeypatch.setattr(Claims, "reserve", reserve_late)
    await client.send(encode_queue_request(client.profile, 1))
    await asked.wait()
    client.reset()
    await until(lambda: not edge.connections())
    let_go.set()
    await done.wait()

    async def is_free() -> bool:
        return await assigned_until(edge, queue) == 0

    await until(is_free)
