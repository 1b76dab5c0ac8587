"""Test peers that do not read (tmq.md 7.3)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os

from protos import tmq
from tests.live import until
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge
from tests.tmq.process import resident_bytes

MIB = 1 << 20
Q = tmq.mqid_of(b"q")
SMALL_BUFFER = {"document": {"port": 0, "write_buffer_bytes": 64 << 10, "write_timeout_s": 0.6}}
PATIENT = {"document": {"port": 0, "write_buffer_bytes": 64 << 10, "write_timeout_s": 20}}


async def filled(edge: LiveEdge, messages: int, size: int) -> Client:
    """Return a client that has put this many messages into q."""
    client = await edge.client()
    await client.queue(b"q")
    for number in range(messages):
        assert await client.enq(Q, bytes([number % 256]) * size)
    return client


async def deaf(edge: LiveEdge) -> Client:
    """Return a client with little room for replies, and with q open."""
    client = await edge.client(receive_buffer=4096)
    await client.queue(b"q")
    return client


async def all_back(edge: LiveEdge, count: int) -> bool:
    return bool((await edge.stats("q"))["ready"] == count)


async def test_peer_that_does_not_read_is_closed_with_bounded_memory(make_edge: MakeEdge) -> None:
    # 7.3: however much it has requested; messages that were to be delivered are returned
    edge = await make_edge(listeners=SMALL_BUFFER)
    await filled(edge, 100, MIB)
    greedy = await deaf(edge)
    gc.collect()
    before = resident_bytes(os.getpid())
    await greedy.send(tmq.encode_dnq(Q) * 100)
    most = 0
    while edge.refusals()["write_timeout"] == 0:
        most = max(most, resident_bytes(os.getpid()) - before)
        await asyncio.sleep(0.01)
    assert most < 40 * MIB, f"{most / MIB:.0f} MiB were held for one client that does not read"
    greedy.reset()
    await until(lambda: all_back(edge, 100))


MOST = 400 << 10  # eight blocked connections with more than 64 KiB each exceed it


async def test_unread_output_is_limited(make_edge: MakeEdge) -> None:
    # 7.3: the connection that holds most is closed and its messages are returned; the others read theirs later
    edge = await make_edge(listeners=PATIENT, output=MOST)
    reader = await filled(edge, 80, MIB)
    peers = [await deaf(edge) for _ in range(8)]
    for peer in peers:
        await peer.send(tmq.encode_dnq(Q) * 10)
    await until(lambda: len(edge.connections()) == 1 + len(peers) - edge.refusals()["output_budget"] < 9)
    assert edge.output.total <= MOST
    served = 0
    for peer in peers:
        with contextlib.suppress(ConnectionError, EOFError):
            for _ in range(10):
                assert len(await peer.message() or b"") in (0, MIB)
            served += 1
    assert served == len(peers) - edge.refusals()["output_budget"]
    assert await reader.select(Q) >= 0
    for peer in peers:
        peer.reset()
    await until(lambda: leased_by_nobody(edge))


async def leased_by_nobody(edge: LiveEdge) -> bool:
    return bool((await edge.stats("q"))["in_flight"] == 0)


async def test_blocked_connection_is_not_read(make_edge: MakeEdge) -> None:
    # 7.3: once the client reads again, every request is answered in order
    edge = await make_edge(listeners=PATIENT)
    client = await deaf(edge)
    nil, requests = tmq.nil_mqid(client.dialect), 120_000
    sending = asyncio.ensure_future(send_all(client, tmq.encode_open(b"") * requests))
    await until(lambda: blocked(edge) == 1)
    received = edge.listeners["document"].traffic.received
    assert await client.is_untouched(0.5)
    assert edge.listeners["document"].traffic.received == received < 5 * requests
    for _ in range(120):
        assert await client.read(64 * 1_000) == nil * 1_000
    await sending


async def send_all(client: Client, data: bytes) -> None:
    """Send all data as fast as it is read, without a time limit."""
    await asyncio.get_running_loop().sock_sendall(client.sock, data)


def blocked(edge: LiveEdge) -> int:
    """Return the number of connections whose output waits for the peer."""
    return sum(connection.is_blocked() for connection in edge.connections())


async def test_requests_after_large_replies_are_answered(make_edge: MakeEdge) -> None:
    # 7.3, 1.2: blocked within pipelined requests, but not for ever
    edge = await make_edge(listeners=PATIENT)
    await filled(edge, 24, MIB)
    client = await deaf(edge)
    await client.send(
        tmq.encode_dnq(Q) * 12,
        tmq.encode_enq(Q, b"new"),
        tmq.encode_open(b"q"),
        tmq.encode_dnq(Q) * 12,
        tmq.encode_select(Q) * 100,
        tmq.encode_dnq(Q) * 2,
    )
    await until(lambda: blocked(edge) == 1)
    assert [await client.message() for _ in range(12)] == [bytes([number]) * MIB for number in range(12)]
    assert await client.read(1 + 64) == b"\1" + Q
    assert [await client.message() for _ in range(12)] == [bytes([number]) * MIB for number in range(12, 24)]
    assert await client.read(800) == (1).to_bytes(8, "big") * 100
    assert [await client.message() for _ in range(2)] == [b"new", None]


async def test_waiting_for_the_client_is_not_request_time(make_edge: MakeEdge) -> None:
    """Check that time spent waiting for a slow client does not raise PenstockSlowRequests."""
    edge = await make_edge(listeners=PATIENT)
    await filled(edge, 12, MIB)
    client = await edge.client(receive_buffer=256 << 10)  # a fast reader, once it reads
    await client.queue(b"q")
    loop = asyncio.get_running_loop()
    began = loop.time()
    await client.send(tmq.encode_dnq(Q) * 12)
    await until(lambda: blocked(edge) == 1)
    blocked_at = loop.time()
    assert await client.is_untouched(2.0)
    waited_s = loop.time() - blocked_at
    assert [await client.message() for _ in range(12)] == [bytes([number]) * MIB for number in range(12)]
    edge.tally.publish()
    assert edge.value("penstock_request_seconds_count", operation=tmq.Operation.DNQ.value) == 12
    most_s = loop.time() - began - waited_s  # for each request
    assert edge.value("penstock_request_seconds_sum", operation=tmq.Operation.DNQ.value) <= 12 * most_s


async def test_others_are_served_meanwhile(make_edge: MakeEdge) -> None:
    # 7.3
    edge = await make_edge(listeners=PATIENT)
    other = await filled(edge, 36, MIB)
    clients = [await deaf(edge) for _ in range(3)]
    for client in clients:
        await client.send(tmq.encode_dnq(Q) * 12)
    await until(lambda: blocked(edge) == 3)
    await other.queue(b"another")
    another = tmq.mqid_of(b"another")
    for number in range(50):
        assert await other.enq(another, b"%d" % number)
        assert await other.dnq(another) == b"%d" % number
    found = [await client.message() for client in clients for _ in range(12)]
    assert sorted(body[:1] for body in found if body) == [bytes([number]) for number in range(36)]


async def test_slow_reader_is_not_closed(make_edge: MakeEdge) -> None:
    # 7.3: longer than the limit, but always making progress
    edge = await make_edge(listeners=SMALL_BUFFER)
    await filled(edge, 12, MIB)
    slow = await deaf(edge)
    await slow.send(tmq.encode_dnq(Q) * 12)
    started = asyncio.get_running_loop().time()
    for number in range(12):
        assert await slow.message() == bytes([number]) * MIB
        await asyncio.sleep(0.15)  # the client is slow on purpose
    assert asyncio.get_running_loop().time() - started > 2 * 0.6
    assert not edge.refusals()["write_timeout"]


async def test_timeout_does_not_apply_while_reading_is_paused(make_edge: MakeEdge) -> None:
    # 7.3: the time limit starts again when the server reads again
    edge = await make_edge(listeners=PATIENT, request_timeout_s=0.6)
    await filled(edge, 8, MIB)
    client = await deaf(edge)
    request = tmq.encode_enq(Q, b"late?")
    await client.send(tmq.encode_dnq(Q) * 8 + request[:-1])
    await until(lambda: blocked(edge) == 1)
    assert await client.is_untouched(1.2)
    for number in range(8):
        assert await client.message() == bytes([number]) * MIB
    await client.send(request[-1:])
    assert await client.read(1) == b"\1"
