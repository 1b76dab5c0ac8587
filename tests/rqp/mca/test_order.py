"""Order at a receiving MCA: nothing is put in behind a refused RELIABLE message (rqp_mca.md 2.1, 3.3)."""

from __future__ import annotations

import asyncio
import random

from services.store import Queue
from services.store.pipeline.async_client import AsyncClient
from tests.rqp.conftest import NewServer, Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import UNRELIABLE, Client
from tests.servers import Server

ENOUGH = 60.0  # s


async def test_nothing_after_a_refused_message_in_its_run_is_put_in(edge: LiveEdge, client: Client) -> None:
    """Check that nothing after a refused message in its run is put in, even if it would fit."""
    queue = await edge.numbered("orders", 7, maxBytes=10_000)
    await client.send(client.data(7, b"1" * 5000, b"2" * 6000, b"3" * 100))
    assert await client.rest() == client.confirm
    assert await edge.bodies(queue) == [b"1" * 5000]


async def test_nothing_after_a_refused_message_in_later_runs_is_put_in(
    edge: LiveEdge, client: Client
) -> None:
    """Check that nothing after a refused message in later runs is put in, for any queue.

    UNRELIABLE messages are dropped, as they have no other copy.
    """
    queue = await edge.heard_numbered("orders", 7, maxBytes=10)
    other = await edge.heard_numbered("other", 8)
    await client.put(8, b"0")
    await client.put(7, b"1")
    behind = (client.data(8, b"3"), client.data(7, b"4"), client.data(8, b"5", kind=UNRELIABLE))
    await client.send(client.data(7, b"2" * 10), *behind)
    assert await client.rest() == b""
    assert await edge.bodies(queue) == [b"1"]
    assert await edge.bodies(other) == [b"0", b"5"]
    assert edge.refusals() == {"queue_full": 1}


async def test_nothing_after_a_refused_message_in_another_domain_is_put_in(
    edge: LiveEdge, client: Client
) -> None:
    """Check that nothing after a refused message in another domain is put in.

    Each domain has its own store connection; earlier messages in another one are awaited.
    """
    await edge.numbered("shut", 7, paused=True, domain="two")
    other = await edge.numbered("other", 8)
    await client.put(8, b"0")
    assert not await client.is_available(7, 8)
    for kind in (UNRELIABLE, UNRELIABLE):
        await client.send(client.data(7, b"to the dead letters", kind=kind), client.data(8, b"1", kind=kind))
    await client.send(client.data(7, b"2"), client.data(8, b"3"))
    assert await client.rest() == b""
    assert await edge.bodies(other) == [b"0", b"1", b"1"]


async def test_window_into_a_full_queue_keeps_the_order(
    server: Server, new_server: NewServer, start: Start
) -> None:
    """Check that a window into a full queue keeps the order of first arrivals (3.3).

    Messages are small and large, and some are removed now and then.
    """
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    there = await start(await new_server())
    queue = await there.numbered("orders", 7, maxBytes=2000)
    mca = {"peers": {"p": {"addresses": [there.address], "window": 100}}, "max_pause_s": 0.05}
    here = await start(server, mca=mca)
    away = await here.remote("away")
    sent = [b"%06d" % number + b"z" * rng.choice((0, 0, 400)) for number in range(400)]
    await here.put(away, *sent)
    async with asyncio.timeout(ENOUGH):
        arrived = await first_arrivals(there, queue, len(sent))
    assert arrived == sent
    assert there.refusals()["queue_full"] > 0


async def first_arrivals(edge: LiveEdge, queue: Queue, number: int) -> list[bytes]:
    """Take messages out until there were so many different ones."""
    async_client = AsyncClient(edge.tools.open_domain(queue.domain).pipe)
    seen: dict[bytes, None] = {}
    while len(seen) < number:
        got = await async_client.take(queue, 5)
        seen.update(dict.fromkeys(record[4:] for delivery in got for record in delivery.records()))
        if got:
            await async_client.settle(got)
        else:
            await asyncio.sleep(0.01)
    return list(seen)
