"""Availability and assignment of queues (rqp_mca.md 2.2, 2.3, 2.4)."""

from __future__ import annotations

import asyncio

from tests.live import until
from tests.rqp.conftest import Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import Client
from tests.servers import Server

END = 99  # the number of a queue that is always available: its answer ends a silence


async def test_availability_is_confirmed(edge: LiveEdge, client: Client) -> None:
    """Check that availability is confirmed if the queue exists, is not paused and not full (2.2).

    Otherwise no answer is sent.
    """
    await edge.numbered("end", END)
    await edge.numbered("well", 1)
    await edge.numbered("paused", 2, paused=True)
    await edge.numbered("full", 3, maxLength=1)
    await client.put(3, b"hello")
    assert await client.is_available(1, END)
    assert not await client.is_available(2, END)
    assert not await client.is_available(3, END)
    assert not await client.is_available(4, END)
    assert edge.refusals() == {"queue_paused": 1, "queue_full": 1, "queue_unknown": 1}


async def test_transmission_queue_is_never_available(edge: LiveEdge, client: Client) -> None:
    """Check that a transmission queue is never available: two systems might pass a message on forever (2.4)."""
    await edge.numbered("end", END)
    await edge.remote("away", 7)
    assert not await client.is_available(7, END)
    assert not await client.is_assigned(7, END)


async def test_released_queue_becomes_available(edge: LiveEdge, client: Client) -> None:
    """Check that a released queue becomes available: each answer reflects its present state (2.2)."""
    await edge.numbered("end", END)
    queue = await edge.numbered("orders", 1, maxLength=1)
    await client.put(1, b"hello")
    assert not await client.is_available(1, END)
    assert await edge.tools.catalogue.delete(queue) == 1
    assert not await client.is_available(1, END)
    await edge.numbered("orders", 1)
    assert await client.is_available(1, END)


async def test_assigned_queue_refuses_other_connections(edge: LiveEdge, client: Client) -> None:
    """Check that an assigned queue refuses other connections: no answers, no messages put in (2.3)."""
    await edge.numbered("end", END)
    queue = await edge.numbered("orders", 1)
    other = await edge.client()
    await client.request(1)
    assert (await edge.stats(queue))["reserved_by"].startswith("mca rqp-")
    assert await client.is_available(1, END)
    await client.request(1)
    assert not await other.is_available(1, END)
    assert not await other.is_assigned(1, END)
    await other.send(other.data(1, b"theirs"))
    assert await other.rest() == b""
    await client.put(1, b"ours")
    assert await edge.bodies(queue) == [b"ours"]


async def test_unavailable_queue_is_not_assigned(edge: LiveEdge, client: Client) -> None:
    """Check that an unavailable queue is not assigned (2.3)."""
    await edge.numbered("end", END)
    await edge.numbered("paused", 1, paused=True)
    await edge.numbered("full", 2, maxLength=1)
    await client.put(2, b"hello")
    for number in (1, 2, 3):
        assert not await client.is_assigned(number, END)


async def test_connection_may_hold_several_queues(edge: LiveEdge, client: Client) -> None:
    """Check that a connection may hold several queues (2.3)."""
    await edge.numbered("end", END)
    await edge.numbered("one", 1)
    await edge.numbered("two", 2)
    await client.request(1)
    await client.request(2)
    other = await edge.client()
    assert not await other.is_available(1, END)
    assert not await other.is_available(2, END)


async def test_assignment_ends_with_its_connection(edge: LiveEdge, client: Client) -> None:
    """Check that an assignment ends with its connection (2.3, 2.4).

    After a FIN the queue is free before the connection is closed; a reset frees it too.
    """
    await edge.numbered("end", END)
    await edge.numbered("orders", 1)
    other = await edge.client()
    await client.request(1)
    await client.send(client.data(1, b"last"))
    client.fin()
    assert await client.rest() == client.confirm
    assert await other.is_available(1, END)
    third = await edge.client()
    await third.request(1)
    assert not await other.is_available(1, END)
    third.reset()
    await until(lambda: other.is_available(1, END))


async def test_refused_message_ends_its_connections_assignments(edge: LiveEdge, client: Client) -> None:
    """Check that a refused message closes its connection and ends its assignments (2.1, 2.3)."""
    await edge.numbered("end", END)
    await edge.numbered("orders", 1)
    await client.request(1)
    await client.send(client.data(5, b"missing"))
    assert await client.rest() == b""
    other = await edge.client()
    await until(lambda: other.is_available(1, END))


async def test_non_exclusive_queue_has_many_holders(edge: LiveEdge, client: Client) -> None:
    """Check that a queue with `exclusive: false` has many holders (2.3)."""
    queue = await edge.numbered("orders", 1, exclusive=False)
    other = await edge.client()
    await client.request(1)
    await other.request(1)
    await client.put(1, b"a")
    await other.put(1, b"b")
    assert await edge.bodies(queue) == [b"a", b"b"]
    assert (await edge.stats(queue))["reserved_by"] == ""


async def test_assignment_expires_without_messages(server: Server, start: Start) -> None:
    """Check that an assignment expires without messages for this queue_id (2.3)."""
    edge = await start(server, mca={"reservation_ttl_s": 0.5})
    await edge.numbered("end", END)
    await edge.numbered("orders", 1)
    client, other = await edge.client(), await edge.client()
    await client.request(1)
    assert not await other.is_available(1, END)
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not await other.is_available(1, END):
        await client.put(END, b"of another queue")
        assert loop.time() - began < 20
    await other.request(1)
    await client.send(client.data(1, b"too late"))
    assert await client.rest() == b""
    await other.put(1, b"mine")


async def test_messages_renew_the_assignment(server: Server, start: Start) -> None:
    """Check that each message for the queue renews the assignment for the whole ttl, also in quick succession (2.3)."""
    ttl_s = 1.2
    edge = await start(server, mca={"reservation_ttl_s": ttl_s})
    await edge.numbered("end", END)
    await edge.numbered("orders", 1)
    client, other = await edge.client(), await edge.client()
    loop = asyncio.get_running_loop()
    await client.request(1)
    began = named = loop.time()
    while loop.time() - began < 3 * ttl_s:
        await asyncio.sleep(ttl_s / 10)
        sent = loop.time()
        await client.put(1, b"hello")
        late = loop.time() - named >= ttl_s  # a stalled machine proves nothing
        assert late or not await other.is_available(1, END)
        named = sent


async def test_edges_share_assignments(server: Server, start: Start) -> None:
    """Check that edges share assignments: they are leases in the store (2.3)."""
    one, two = await start(server), await start(server)
    await one.numbered("end", END)
    queue = await one.numbered("orders", 1)
    client, other = await one.client(), await two.client()
    await client.request(1)
    assert not await other.is_available(1, END)
    assert not await other.is_assigned(1, END)
    await other.send(other.data(1, b"theirs"))
    assert await other.rest() == b""
    assert two.refusals()["queue_reserved"] >= 1
    await client.put(1, b"ours")
    client.fin()
    assert await client.rest() == b""
    third = await two.client()
    await third.request(1)
    await third.put(1, b"now theirs")
    assert await one.bodies(queue) == [b"ours", b"now theirs"]


async def test_concurrent_requests_assign_once(server: Server, start: Start) -> None:
    """Check that concurrent requests on two servers assign a queue once (2.3)."""
    edges = [await start(server), await start(server)]
    await edges[0].numbered("orders", 1)
    await edges[0].numbered("end", END)
    clients = [await edge.client() for edge in edges for _ in range(10)]
    assigned = await asyncio.gather(*(client.is_assigned(1, END) for client in clients))
    assert sum(assigned) == 1
    await clients[assigned.index(True)].put(1, b"mine")
