"""Test the limits of a transaction (tmq.md 5.2-5.4)."""

from __future__ import annotations

import asyncio

import pytest

from services.store.model.spec import Delivery
from tests.live import until
from tests.servers import Server
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge

MIB = 1 << 20


async def sees(client: Client, mqid: bytes, count: int) -> bool:
    return await client.select(mqid) == count


async def test_sixteen_messages_of_1_mib_are_16_mib(client: Client) -> None:
    # 5.2
    mqid = await client.queue(b"q")
    assert await client.ts()
    for number in range(16):
        assert await client.enq(mqid, bytes([number]) * MIB)
    assert not await client.enq(mqid, b"x")
    assert await client.enq(mqid, b""), "an empty message needs no room"
    assert await client.te()
    assert [body[:1] for body in await client.drain(mqid)] == [*(bytes([n]) for n in range(16)), b""]


async def test_dnqs_count_as_operations(make_edge: MakeEdge) -> None:
    # 5.2: the DNQ that would exceed the limit fails, and its message stays in its place
    edge = await make_edge(transaction={"max_bytes": 1_000})
    client, other = await edge.client(), await edge.client()
    mine, theirs = await client.queue(b"q"), await other.queue(b"q")
    bodies = [bytes([n]) * 300 for n in range(5)]
    await client.put(mine, *bodies)
    assert await client.ts()
    assert await client.messages(mine, 5) == [*bodies[:3], None, None]
    assert await client.dnq(mine) is None
    assert edge.refusals()["transaction_limit"] == 2
    assert await other.drain(theirs) == bodies[3:]
    assert await client.enq(mine, bytes(100))
    assert not await client.enq(mine, b"x")
    assert await client.te()
    assert await client.drain(mine) == [bytes(100)]


async def test_messages_beyond_the_limit_are_at_the_front_after_an_abort(make_edge: MakeEdge) -> None:
    # 5.2, 5.4
    edge = await make_edge(transaction={"max_bytes": 100})
    client = await edge.client()
    mqid = await client.queue(b"q")
    bodies = [bytes([n]) * 60 for n in range(4)]
    await client.put(mqid, *bodies)
    assert await client.ts()
    assert await client.messages(mqid, 4) == [bodies[0], None, None, None]
    assert await client.ta()
    assert await client.drain(mqid) == bodies


async def test_empty_replies_count_as_operations(make_edge: MakeEdge) -> None:
    # 5.2
    edge = await make_edge(transaction={"max_operations": 3})
    client = await edge.client()
    mqid = await client.queue(b"q")
    assert await client.ts()
    assert await client.messages(mqid, 2) == [None, None]
    assert await client.enq(mqid, b"1")
    assert not await client.enq(mqid, b"2")
    assert await client.te()
    assert await client.drain(mqid) == [b"1"]


async def test_next_transaction_begins_empty(make_edge: MakeEdge) -> None:
    # 5.2
    edge = await make_edge(transaction={"max_operations": 2})
    client = await edge.client()
    mqid = await client.queue(b"q")
    for end in (client.te, client.ta, client.te):
        assert await client.ts()
        await client.put(mqid, b"1", b"2")
        assert not await client.enq(mqid, b"3")
        assert await end()
    assert await client.select(mqid) == 4


async def test_thousand_messages_from_many_queues(edge: LiveEdge, client: Client) -> None:
    # 5.3: one atomic step
    queues = [await client.queue(b"%d" % n) for n in range(20)]
    target = await client.queue(b"target")
    for mqid in queues:
        await client.put(mqid, *(b"%d" % n for n in range(49)))
    assert await client.ts()
    for mqid in queues:
        assert await client.messages(mqid, 49) == [b"%d" % n for n in range(49)]
    await client.put(target, *(b"%d" % n for n in range(20)))
    assert not await client.enq(target, b"the one beyond")
    assert await client.te()
    assert [await client.select(mqid) for mqid in (*queues, target)] == [0] * 20 + [20]


async def test_at_most_once_applies_outside_transactions(edge: LiveEdge, client: Client) -> None:
    # 5.4, 6.1: a transaction always leases its messages, for any document of the queue, and an abort returns them
    await edge.declare("once", delivery=Delivery.AT_MOST_ONCE)
    mqid = await client.queue(b"once")
    await client.put(mqid, b"1", b"2")
    assert await client.ts()
    assert await client.dnq(mqid) == b"1"
    assert await client.ta()
    assert await client.ts()
    assert await client.dnq(mqid) == b"1"
    assert await client.te()
    assert await client.drain(mqid) == [b"2"]


# The time limit (5.4)


@pytest.fixture
async def hasty(own_server: Server, make_edge: MakeEdge) -> LiveEdge:
    """Return an edge with a short transaction time limit, on a server that can be stopped."""
    return await make_edge(own_server.url, transaction={"time_limit_s": 0.3}, eof_grace_s=0.1)


@pytest.mark.parametrize("end", ["te", "ta"])
async def test_message_taken_after_the_time_limit_is_returned(
    hasty: LiveEdge, own_server: Server, end: str
) -> None:
    # 5.4: that DNQ fails, and its message returns at once: this connection does not hold it
    client, other = await hasty.client(), await hasty.client()
    mine, theirs = await client.queue(b"q"), await other.queue(b"q")
    await client.put(mine, b"1", b"2")
    assert await client.ts()
    assert await client.dnq(mine) == b"1"
    own_server.stop()
    answer = asyncio.ensure_future(client.dnq(mine))
    await until(lambda: hasty.refusals()["transaction_time_limit"])
    own_server.cont()
    assert await answer is None
    await until(lambda: sees(other, theirs, 2))
    assert await getattr(client, end)() is (end == "ta")
    assert await client.drain(mine) == [b"1", b"2"]


async def test_time_limit_ends_with_te(hasty: LiveEdge, own_server: Server) -> None:
    # 5.4: the store takes longer than the limit, and TE still succeeds
    client = await hasty.client()
    mqid = await client.queue(b"q")
    await client.put(mqid, b"1")
    assert await client.ts()
    assert await client.dnq(mqid) == b"1"
    assert await client.enq(mqid, b"2")
    own_server.stop()
    answer = asyncio.ensure_future(client.te())
    await asyncio.sleep(0.6)  # longer than the limit: there is no event to wait for
    own_server.cont()
    assert await answer
    assert await client.drain(mqid) == [b"2"]
    assert not hasty.refusals()["transaction_time_limit"]


async def test_limit_applies_to_each_transaction(hasty: LiveEdge) -> None:
    # 5.4: after TA or TE the next transaction has its full time
    client = await hasty.client()
    mqid = await client.queue(b"q")
    assert await client.ts()
    await until(lambda: hasty.refusals()["transaction_time_limit"] == 1)
    assert not await client.ts()
    assert await client.ta()
    assert await client.ts()
    assert await client.enq(mqid, b"1")
    assert await client.te()
    assert await client.drain(mqid) == [b"1"]
