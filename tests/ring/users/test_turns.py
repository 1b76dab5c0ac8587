"""A node's own requests and forwarded messages take turns (ring.md 2.2, 4.5)."""

from __future__ import annotations

import asyncio

import pytest

from services.ring.remote_queues import RemoteMessage
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Ring, Start
from tests.ring.users.test_requests import stores


@pytest.mark.parametrize("window", [1, 3])
async def test_busy_node_forwards_requests_of_others(
    start: Start, new_server: NewServer, window: int
) -> None:
    """Check that a busy node forwards requests of others, also with the originals' window of 1 (4.5)."""
    busy, goal, other = nodes = await stores(start, new_server, 3)
    await goal.declare("orders")
    Ring(nodes, window=window)
    pushes = [asyncio.ensure_future(busy.push(b"orders", b"%d" % n)) for n in range(300)]
    await until(lambda: pushes[5].done())
    assert await other.push(b"orders", b"from behind") is None
    assert len(busy.users.remote_requests) > 150
    assert set(await asyncio.gather(*pushes)) == {None}


async def test_a_busy_node_settles_what_it_pulled(start: Start, new_server: NewServer) -> None:
    """Check that a busy node settles pulled messages: settlements wait in its store, requests in memory (5.4)."""
    busy, goal = nodes = await stores(start, new_server, 2)
    await goal.declare("work")
    await goal.declare("orders")
    await goal.put("work", b"a")
    Ring(nodes, window=1)
    pushes = [asyncio.ensure_future(busy.push(b"orders", b"%d" % n)) for n in range(300)]
    brought = await busy.pull(b"work")
    assert isinstance(brought, RemoteMessage)
    more = [asyncio.ensure_future(busy.push(b"orders", b"%d" % n)) for n in range(300)]
    brought.settle()

    async def is_settled() -> bool:
        return bool((await goal.stats("work"))["acked"] == 1)

    await until(is_settled)
    assert len(busy.users.remote_requests) > 50
    assert set(await asyncio.gather(*pushes, *more)) == {None}
