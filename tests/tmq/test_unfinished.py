"""Test clients that leave a request unfinished, and silent clients (tmq.md 7.3)."""

from __future__ import annotations

import asyncio
import struct

import pytest

from protos import tmq
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge

MIB = 1 << 20
Q = tmq.mqid_of(b"q")


@pytest.mark.parametrize(
    "beginning",
    [
        tmq.encode_create(b"name")[:1],
        tmq.encode_create(b"name")[:-1],
        tmq.encode_open(bytes(60_000))[:-1],
        tmq.encode_dnq(Q)[:10],
        tmq.encode_enq(Q, bytes(100_000))[:-1],
        tmq.encode_enq(Q, bytes(2 * MIB))[: MIB + 100],
        b"\4" + Q + struct.pack(">I", 5),
    ],
    ids=["code", "name", "name_too_long", "mqid", "body", "body_too_large", "length"],
)
async def test_unfinished_request_times_out(make_edge: MakeEdge, beginning: bytes) -> None:
    # 7.3: measured from its first byte, also while a body is being skipped
    edge = await make_edge(request_timeout_s=0.3)
    client = await edge.client()
    assert await client.create(b"q")
    await client.open(b"q")
    await client.send(beginning)
    assert await client.ended() == "fin"
    assert edge.refusals() == {"request_timeout": 1}


async def test_timeout_is_not_per_byte(make_edge: MakeEdge) -> None:
    # 7.3: single bytes do not extend the time; 100 such clients do not affect others
    edge = await make_edge(request_timeout_s=0.6)
    other = await edge.client()
    await other.queue(b"q")
    clients = [await edge.client() for _ in range(100)]
    started = asyncio.get_running_loop().time()
    ends = [asyncio.ensure_future(trickle(client, tmq.encode_enq(Q, bytes(1_000)))) for client in clients]
    while not all(end.done() for end in ends):
        assert await other.enq(Q, b"unharmed")
        await asyncio.sleep(0.01)
    assert asyncio.get_running_loop().time() - started > 0.6
    assert edge.refusals() == {"request_timeout": 100}


async def trickle(client: Client, request: bytes) -> None:
    try:
        for at in range(len(request)):
            await client.send(request[at : at + 1])
            if not await client.is_silent(0.02):
                return
    except (ConnectionError, EOFError):
        return
    raise AssertionError("the request was completed")


async def test_timeout_begins_with_each_request(make_edge: MakeEdge) -> None:
    # 7.3: slow but within the limit, any number of times
    edge = await make_edge(request_timeout_s=0.8)
    client = await edge.client()
    await client.queue(b"q")
    for number in range(6):
        request = tmq.encode_enq(Q, b"%d" % number)
        await client.send(request[:20])
        await asyncio.sleep(0.2)  # the client is slow on purpose
        await client.send(request[20:])
        assert await client.read(1) == b"\1"
    assert len(await client.drain(Q)) == 6


# Silent clients


async def test_idle_between_requests_is_allowed(make_edge: MakeEdge) -> None:
    # 7.3: longer than every timeout, after any requests
    edge = await make_edge(
        request_timeout_s=0.2, eof_grace_s=0.05, listeners={"document": {"port": 0, "write_timeout_s": 0.6}}
    )
    silent, reader, inside = [await edge.client() for _ in range(3)]
    for client in (reader, inside):
        await client.queue(b"q")
    await inside.put(Q, b"1", b"2")
    assert await reader.dnq(Q) == b"1"
    assert await inside.ts()
    assert await inside.dnq(Q) == b"2"
    assert await silent.is_silent(1.0)
    assert await silent.create(b"other")
    assert await reader.dnq(Q) is None
    assert await inside.te()
    assert edge.refusals() == {"queue_exists": 1}


async def test_connection_beyond_the_limit_is_refused(make_edge: MakeEdge) -> None:
    # others are unaffected
    edge = await make_edge(listeners={"document": {"port": 0, "max_connections": 2}})
    first, second = await edge.client(), await edge.client()
    third = await edge.client()
    assert await third.ended() in ("fin", "reset")
    assert await first.create(b"q")
    assert await second.open(b"q") is not None
    assert edge.refusals() == {"connection_limit": 1}
