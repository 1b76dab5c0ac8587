"""Test which replies a FIN settles outside a transaction (tmq.md 6.1)."""

from __future__ import annotations

import asyncio

from protos import tmq
from tests.live import until
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge
from tests.tmq.states import (
    OTHER,
    THREE,
    Q,
    dnq_read,
    dnq_unread,
    prepared,
    sees,
)


async def test_fin_settles_delivered_replies(edge: LiveEdge) -> None:
    # 6.1
    client, witness = await prepared(edge)
    await dnq_read(client)
    client.fin()
    assert await client.ended() == "fin"
    assert await witness.drain(Q) == THREE[1:]
    assert (await edge.stats("q"))["returned"] == 0


async def test_fin_inside_a_request_settles_too(edge: LiveEdge) -> None:
    # 6.1, 3.3: every byte of the reply was acknowledged
    client, witness = await prepared(edge)
    await dnq_read(client)
    await client.send(tmq.encode_enq(OTHER, b"torn")[:-1])
    client.fin()
    assert await client.ended() == "fin"
    assert await witness.drain(Q) == THREE[1:]
    assert await witness.drain(OTHER) == []
    assert edge.refusals()["truncated"] == 1


async def test_replies_delivered_after_the_fin_are_settled(edge: LiveEdge) -> None:
    # 6.1: after a half-close, all requests are answered and their replies read
    client, witness = await prepared(edge)
    await client.send(tmq.encode_dnq(Q) * 4)
    client.fin()
    expected = b"".join(tmq.encode_record(body) for body in THREE) + tmq.EMPTY
    assert await client.rest() == expected
    assert await witness.drain(Q) == []


async def test_program_that_exits_without_reading_its_reply(edge: LiveEdge) -> None:
    # 6.1: the peer's system answers with a reset, although it has acknowledged the bytes
    client, witness = await prepared(edge)
    await dnq_unread(client)
    client.close()
    await until(lambda: sees(witness, Q, 3))
    assert await witness.drain(Q) == THREE


async def test_reset_within_the_grace_after_fin_returns_the_message(make_edge: MakeEdge) -> None:
    # 6.1: a half-closed program ends with its reply unread
    edge = await make_edge()  # with the default of one second (6.1)
    client, witness = await prepared(edge)
    await dnq_unread(client)
    client.fin()
    await until(lambda: any(connection.peer_ended for connection in edge.connections()))
    client.close()
    await until(lambda: sees(witness, Q, 3))
    assert await witness.drain(Q) == THREE


async def test_undelivered_reply_is_returned(make_edge: MakeEdge) -> None:
    # 6.1, 7.3: half-closed, with too little unread to block the edge; without progress the connection ends
    edge = await make_edge(eof_grace_s=0.1, request_timeout_s=0.5)
    client, witness = await edge.client(receive_buffer=4096), await edge.client()
    await client.queue(b"q")
    await witness.queue(b"q")
    await witness.put(Q, bytes(200_000))
    await client.send(tmq.encode_dnq(Q))
    client.fin()
    await until(lambda: sees(witness, Q, 1))
    assert edge.refusals()["replies_unread"] == 1
    assert [len(body) for body in await witness.drain(Q)] == [200_000]


async def test_slow_reply_is_waited_for(make_edge: MakeEdge) -> None:
    # 6.1, 7.3: half-closed and slow, but always making progress: longer than the limit, and settled in the end
    edge = await make_edge(eof_grace_s=0.1, request_timeout_s=1.5)
    slow, witness = await edge.client(receive_buffer=16 << 10), await edge.client()
    await slow.queue(b"q")
    await witness.queue(b"q")
    await witness.put(Q, bytes(400_000))
    loop = asyncio.get_running_loop()
    started = loop.time()
    await slow.send(tmq.encode_dnq(Q))
    slow.fin()
    reply = b""
    while chunk := await loop.sock_recv(slow.sock, 20_000):
        reply += chunk
        await asyncio.sleep(0.15)  # the client is slow on purpose
    assert reply == tmq.encode_record(bytes(400_000))
    assert loop.time() - started > 1.5
    assert await witness.drain(Q) == []
    assert edge.refusals()["replies_unread"] == 0
    stats = await edge.stats("q")
    assert (stats["acked"], stats["returned"]) == (1, 0)
