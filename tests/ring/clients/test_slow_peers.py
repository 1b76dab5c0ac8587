"""Peers that do not read: their output is bounded, and other clients are served (ring.md 5.8, tmq.md 7.3)."""

from __future__ import annotations

import asyncio

from tests.live import until
from tests.ring.clients.client import OK, Client, Reply, create, pull, push
from tests.ring.clients.conftest import MakeEdge
from tests.ring.clients.live import CLIENTS, LiveClients

MIB = 1 << 20
IMPATIENT = {"write_buffer_bytes": 64 << 10, "write_timeout_s": 0.6}
PATIENT = {"write_buffer_bytes": 64 << 10, "write_timeout_s": 20}


async def filled(edge: LiveClients, messages: int) -> Client:
    """Return a client that has put this many messages of 1 MiB into q."""
    client = await edge.client()
    await client.create(b"q")
    for number in range(messages):
        await client.push(b"q", bytes([number % 256]) * MIB)
    return client


def blocked(edge: LiveClients) -> int:
    """Return the number of connections whose output waits for the peer."""
    return sum(connection.is_blocked() for connection in edge.connections())


async def all_back(edge: LiveClients, count: int) -> bool:
    return bool((await edge.stats("q"))["ready"] == count)


async def test_peer_that_does_not_read_is_closed(make_edge: MakeEdge) -> None:
    """Check that a peer that stops reading is closed and its messages return.

    tmq.md 7.3: it never holds more than one take beyond its buffer.
    """
    edge = await make_edge(listener=IMPATIENT)
    await filled(edge, 40)
    deaf = await edge.client(receive_buffer=4096)
    await deaf.send(pull(b"q", 40))
    await until(lambda: edge.refusals()["write_timeout"] == 1)
    assert edge.output.total <= 4 * MIB
    deaf.reset()
    await until(lambda: all_back(edge, 40))


async def test_requests_after_large_replies_are_served(make_edge: MakeEdge) -> None:
    """Check that requests behind large replies are served after a pause (5.2)."""
    edge = await make_edge(listener=PATIENT)
    await filled(edge, 24)
    client = await edge.client(receive_buffer=4096)
    await client.send(
        pull(b"q", 12), push(b"q", b"new"), create(b"made"), pull(b"q", 12), pull(b"made", 100), pull(b"q", 2)
    )
    await until(lambda: blocked(edge) == 1)
    for first in (0, 12):
        assert [await client.message(b"q") for _ in range(12)] == [
            bytes([number]) * MIB for number in range(first, first + 12)
        ]
        if not first:
            assert await client.reply(b"q") == Reply(OK, b"")
            assert await client.reply(b"made") == Reply(OK, b"")
    assert [await client.message(b"made") for _ in range(100)] == [None] * 100
    assert [await client.message(b"q") for _ in range(2)] == [b"new", None]


async def test_slow_peer_does_not_delay_others(make_edge: MakeEdge) -> None:
    """Check that a slow peer does not delay others (tmq.md 7.3)."""
    edge = await make_edge(listener=PATIENT)
    other = await filled(edge, 24)
    clients = [await edge.client(receive_buffer=4096) for _ in range(2)]
    for client in clients:
        await client.send(pull(b"q", 12))
    await until(lambda: blocked(edge) == 2)
    await other.create(b"another")
    for number in range(30):
        await other.push(b"another", b"%d" % number)
        assert await other.pull(b"another") == b"%d" % number
    found = [await client.message(b"q") for client in clients for _ in range(12)]
    assert sorted(body[:1] for body in found if body) == [bytes([number]) for number in range(24)]


RUNS = 80  # replies of a thousand pushes: more than the kernel's buffers and the limit of pending output together


async def test_peer_that_reads_no_replies_is_not_read(make_edge: MakeEdge) -> None:
    """Check that a peer that reads no replies is not read, and gets all replies when it reads again.

    tmq.md 7.3: an OK has 518 octets, so the buffers fill up.
    """
    edge = await make_edge(listener=PATIENT)
    client = await edge.client(receive_buffer=4096)
    await client.create(b"q")
    load = push(b"q", *[b"x"] * 1_000)
    sending = asyncio.ensure_future(send_all(client, load * RUNS))
    await until(lambda: blocked(edge) == 1)
    received = edge.listeners[CLIENTS].traffic.received
    assert await client.is_untouched(0.5)
    assert edge.listeners[CLIENTS].traffic.received == received < RUNS * len(load)
    for _ in range(RUNS):
        assert await client.replies(b"q", 1_000) == [Reply(OK, b"")] * 1_000
    await sending
    assert (await edge.stats("q"))["ready"] == RUNS * 1_000


async def send_all(client: Client, data: bytes) -> None:
    """Send all octets at the speed at which they are read."""
    await asyncio.get_running_loop().sock_sendall(client.sock, data)


async def test_many_concurrent_pulls_of_large_messages(edge: LiveClients) -> None:
    """Check that a pull is not answered `empty` because messages of other pulls filled the reply (5.2)."""
    await filled(edge, 20)
    crowd = [await edge.client() for _ in range(10)]
    for one in crowd:
        await one.send(pull(b"q", 2))
    found = [await one.message(b"q") for one in crowd for _ in range(2)]
    assert sorted(body[:1] for body in found if body) == [bytes([number]) for number in range(20)]
