"""Assignments of queues whose numbers move to other queues (rqp_mca.md 2.3)."""

from __future__ import annotations

from services.store import Queue
from tests.live import until
from tests.rqp.conftest import NewServer, Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import Client
from tests.servers import Server

TTL_S = 1.0


async def reserved_by(edge: LiveEdge, queue: Queue) -> str:
    return str((await edge.stats(queue))["reserved_by"])


async def swapped(edge: LiveEdge) -> None:
    """Swap numbers: queue 7 becomes 9, and another queue becomes 7."""
    await edge.replace_numbered("a", 9)
    await edge.replace_numbered("b", 7)


async def test_number_addresses_the_queue_that_has_it_now(server: Server, start: Start) -> None:
    """Check that a number addresses the queue that has it now.

    The first assignment expires although its number is used; the second queue was never requested.
    """
    edge = await start(server, mca={"reservation_ttl_s": TTL_S})
    a, b = await edge.numbered("a", 7), await edge.numbered("b", 8)
    client, other = await edge.client(), await edge.client()
    await client.request(7)
    await client.put(7, b"before")
    await swapped(edge)

    async def arrives_at_b() -> bool:
        await client.put(7, b"after")
        return bool(await edge.bodies(b))

    async def has_run_out() -> bool:
        await client.put(7, b"after")
        return not await reserved_by(edge, a)

    await until(arrives_at_b)
    await until(has_run_out)
    assert await reserved_by(edge, b) == ""
    await other.request(9)
    assert (await edge.bodies(a))[0] == b"before"


async def test_both_queues_are_released_with_the_connection(edge: LiveEdge, client: Client) -> None:
    a, b = await edge.numbered("a", 7), await edge.numbered("b", 8)
    await client.request(7)
    holder = await reserved_by(edge, a)
    await swapped(edge)

    async def has_both() -> bool:
        await client.request(7)
        return await reserved_by(edge, b) == holder

    await until(has_both)
    assert await reserved_by(edge, a) == holder
    client.fin()
    assert await client.rest() == b""
    assert [await reserved_by(edge, queue) for queue in (a, b)] == ["", ""]


async def test_holder_renews_by_the_new_number(edge: LiveEdge, client: Client) -> None:
    a = await edge.numbered("a", 7)
    await edge.numbered("end", 99)
    await client.request(7)
    await edge.replace_numbered("a", 9)
    other = await edge.client()
    assert not await other.is_available(9, 99)
    await client.request(9)
    await client.put(9, b"mine")
    client.fin()
    assert await client.rest() == b""
    assert await reserved_by(edge, a) == ""


async def test_sending_edge_uses_the_moved_number(
    server: Server, new_server: NewServer, start: Start
) -> None:
    """Check that the sending edge uses the moved number.

    It asks again while another connection holds the queue, and sends once that is closed.
    """
    there = await start(await new_server(), mca={"reservation_ttl_s": TTL_S})
    a, b = await there.numbered("a", 7), await there.numbered("b", 8)
    here = await start(server, mca={"peers": {"p": {"addresses": [there.address]}}})
    queue = await here.remote("away")
    await here.put(queue, b"one")
    await until(lambda: here.is_empty(queue))
    await swapped(there)

    async def arrives_at_b() -> bool:
        await here.put(queue, b"two")
        return bool(await there.bodies(b))

    await until(arrives_at_b)
    other = await there.client()

    async def is_free() -> bool:
        await here.put(queue, b"three")
        return not await reserved_by(there, a)

    await until(is_free)
    await other.request(7)
    await here.put(queue, b"four")
    await until(lambda: here.condition(queue))
    other.close()
    await until(lambda: here.is_empty(queue))
    assert (await there.bodies(b))[-1] == b"four"
