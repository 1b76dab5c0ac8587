"""Test TA and the time limit: messages return to their places (tmq.md 5.4). For lost connections see test_endings."""

from __future__ import annotations

from protos import tmq
from tests.live import until
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge


async def test_returned_messages_keep_their_places(client: Client, other: Client) -> None:
    """Check that aborted messages return to their places in the queue (5.4)."""
    mine, theirs = await client.queue(b"q"), await other.queue(b"q")
    await client.put(mine, *(b"%d" % n for n in range(6)))
    assert await client.ts()
    assert await other.ts()
    assert await client.dnq(mine) == b"0"
    assert await other.dnq(theirs) == b"1"
    assert await client.dnq(mine) == b"2"
    assert await other.dnq(theirs) == b"3"
    assert await other.ta()
    assert await client.ta()
    assert await client.drain(mine) == [b"%d" % n for n in range(6)]


async def has(client: Client, mqid: bytes, count: int) -> bool:
    return await client.select(mqid) == count


async def test_time_limit_aborts_and_fails_all_operations(make_edge: MakeEdge) -> None:
    """Check that a transaction that exceeds its time limit is aborted, and all its operations fail (5.4)."""
    edge = await make_edge(transaction={"time_limit_s": 1.0})
    client, other = await edge.client(), await edge.client()
    mine, theirs = await client.queue(b"q"), await other.queue(b"q")
    await client.put(mine, b"1", b"2")
    assert await client.ts()
    assert await client.dnq(mine) == b"1"
    assert await client.enq(mine, b"3")
    await until(lambda: has(other, theirs, 2))
    assert not await client.enq(mine, b"4")
    assert await client.dnq(mine) is None
    assert await client.select(mine) == tmq.UNUSABLE
    assert not await client.te()
    assert await client.drain(mine) == [b"1", b"2"]
    assert edge.refusals()["transaction_time_limit"] == 1


async def test_aborts_count_as_failed_deliveries(edge: LiveEdge, client: Client) -> None:
    """Check that a message whose consumer always aborts ends in the dead letters (5.4, decision 4)."""
    await edge.declare("poison", max_deliveries=3)
    mqid = await client.queue(b"poison")
    await client.put(mqid, b"bad", b"good")
    for _ in range(3):
        assert await client.ts()
        assert await client.dnq(mqid) == b"bad"
        assert await client.ta()
    assert await client.drain(mqid) == [b"good"]
    assert (await edge.stats("poison"))["dead_letters"] == 1
