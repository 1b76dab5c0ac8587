"""Test transactions (tmq.md 5)."""

from __future__ import annotations

from protos import tmq
from services.store import Queue
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge

# 5.1


async def test_each_connection_has_one_transaction(client: Client, other: Client) -> None:
    """Check that each connection has at most one transaction, of its own (5.1)."""
    assert not await client.te()
    assert not await client.ta()
    assert await client.ts()
    assert not await client.ts()
    assert await other.ts()
    assert await client.te()
    assert not await client.te()
    assert await other.ta()


async def test_requests_on_whole_queues_are_not_transactional(client: Client, other: Client) -> None:
    """Check that operations on whole queues take effect at once within a transaction (5.1)."""
    assert await client.ts()
    assert await client.create(b"outside")
    mqid = await other.open(b"outside")
    assert mqid is not None
    assert await client.open(b"outside") == mqid
    assert await client.close_queue(mqid)
    assert await client.delete(b"outside")
    assert await client.ta()
    assert await other.open(b"outside") is None


# 5.2


async def test_enqs_are_invisible_until_te(client: Client, other: Client) -> None:
    """Check that ENQs of a transaction become visible with TE (5.2)."""
    mine, theirs = await client.queue(b"q"), await other.queue(b"q")
    assert await client.ts()
    assert await client.enq(mine, b"hidden")
    assert await client.dnq(mine) is None
    assert await client.select(mine) == 0
    assert await other.dnq(theirs) is None
    assert await client.te()
    assert await other.dnq(theirs) == b"hidden"


async def test_taken_message_is_not_delivered_to_others(client: Client, other: Client) -> None:
    """Check that a message taken in a transaction is not delivered to other clients (5.2)."""
    mine, theirs = await client.queue(b"q"), await other.queue(b"q")
    await client.put(mine, b"1", b"2")
    assert await client.ts()
    assert await client.dnq(mine) == b"1"
    assert await other.select(theirs) == 1
    assert await other.dnq(theirs) == b"2"
    assert await other.dnq(theirs) is None
    assert await client.te()
    assert await other.dnq(theirs) is None


async def test_operation_above_1000_fails(client: Client) -> None:
    """Check that a transaction allows 1000 operations (5.2)."""
    mqid = await client.queue(b"q")
    assert await client.ts()
    await client.put(mqid, *(b"%d" % n for n in range(998)))
    await client.send(
        tmq.encode_enq(mqid, b"998") + tmq.encode_enq(mqid, b"999") + tmq.encode_enq(mqid, b"1000")
    )
    assert await client.read(3) == b"\1\1\0"
    assert await client.dnq(mqid) is None
    assert await client.te()
    assert await client.select(mqid) == 1000


async def test_octets_of_a_transaction_are_limited(make_edge: MakeEdge) -> None:
    """Check that operations fail above a transaction's limit of octets (5.2)."""
    edge = await make_edge(transaction={"max_bytes": 1000})
    client = await edge.client()
    mqid = await client.queue(b"q")
    assert await client.ts()
    assert await client.enq(mqid, bytes(600))
    assert not await client.enq(mqid, bytes(600))
    assert await client.enq(mqid, bytes(300))
    assert await client.te()
    assert [len(body) for body in await client.drain(mqid)] == [600, 300]


# 5.3


async def test_commit_applies_to_all_queues_or_none(edge: LiveEdge, client: Client, other: Client) -> None:
    """Check that one full queue fails the whole transaction (5.3)."""
    await edge.declare("small", max_length=1)
    source, small, large = (
        await client.queue(b"source"),
        await client.queue(b"small"),
        await client.queue(b"large"),
    )
    await client.put(source, b"moved")
    assert await client.ts()
    assert await client.dnq(source) == b"moved"
    assert await client.enq(small, b"a")
    assert await client.enq(small, b"b")
    assert await client.enq(large, b"c")
    assert not await client.te()
    for name, expected in ((b"small", []), (b"large", []), (b"source", [b"moved"])):
        assert await other.drain(await other.queue(name)) == expected
    assert not await client.te(), "the failed TE has ended the transaction"
    assert await client.ts()
    assert await client.enq(small, b"a")
    assert await client.enq(large, b"c")
    assert await client.te()
    assert await other.drain(await other.queue(b"small")) == [b"a"]
    assert await other.drain(await other.queue(b"large")) == [b"c"]


async def test_space_freed_by_the_transaction_counts(edge: LiveEdge, client: Client) -> None:
    """Check that a full queue accepts a message in a transaction that takes one from it (5.3)."""
    await edge.declare("full", max_length=1)
    mqid = await client.queue(b"full")
    await client.put(mqid, b"old")
    assert await client.ts()
    assert await client.dnq(mqid) == b"old"
    assert await client.enq(mqid, b"new")
    assert await client.te()
    assert await client.drain(mqid) == [b"new"]


async def test_deleted_queue_fails_the_transaction(edge: LiveEdge, client: Client, other: Client) -> None:
    """Check that TE fails if a queue was deleted, even if one with the same name exists again (5.3, 5.6)."""
    mqid, kept = await client.queue(b"doomed"), await client.queue(b"kept")
    assert await client.ts()
    assert await client.enq(mqid, b"1")
    assert await client.enq(kept, b"2")
    assert await other.delete(b"doomed")
    assert await other.create(b"doomed")
    assert not await client.te()
    assert await other.drain(await other.queue(b"doomed")) == []
    assert await other.drain(await other.queue(b"kept")) == []


async def test_lost_lease_fails_the_transaction(edge: LiveEdge, client: Client, other: Client) -> None:
    """Check that TE fails if a message that it took was purged meanwhile (5.3)."""
    mqid, kept = await client.queue(b"q"), await client.queue(b"kept")
    await client.put(mqid, b"taken")
    assert await client.ts()
    assert await client.dnq(mqid) == b"taken"
    assert await client.enq(kept, b"2")
    assert await other.delete(b"q")
    assert not await client.te()
    assert await other.drain(await other.queue(b"kept")) == []
    assert edge.refusals()["queue_unknown"] > 0


async def test_empty_transaction_succeeds(client: Client) -> None:
    """Check that TE succeeds without operations (5.3)."""
    assert await client.ts()
    assert await client.te()


# 5.5, 5.6


async def test_queue_of_another_domain_is_refused(edge: LiveEdge, client: Client) -> None:
    """Check that a transaction refuses queues of a second domain (5.5)."""
    far: Queue = await edge.declare("far", domain="elsewhere")
    assert far.domain == "elsewhere"
    near_id, far_id = await client.queue(b"near"), await client.queue(b"far")
    await client.put(far_id, b"there")
    assert await client.ts()
    assert await client.enq(near_id, b"here")
    assert not await client.enq(far_id, b"no")
    assert await client.dnq(far_id) is None
    assert await client.te()
    assert await client.drain(near_id) == [b"here"]
    assert await client.drain(far_id) == [b"there"]


async def test_handles_of_a_deleted_queue_stay_unusable(client: Client, other: Client) -> None:
    """Check that handles of a deleted queue stay invalid after it was created again (5.6, 2.3)."""
    mqid = await client.queue(b"q")
    assert await other.delete(b"q")
    assert await other.create(b"q")
    assert not await client.enq(mqid, b"lost")
    assert await client.dnq(mqid) is None
    assert await client.select(mqid) == tmq.UNUSABLE
    assert await client.open(b"q") == mqid
    assert await client.enq(mqid, b"kept")
    assert await client.drain(mqid) == [b"kept"]


async def test_return_to_a_deleted_queue_is_dropped(client: Client, other: Client) -> None:
    """Check that an abort drops messages of a deleted queue (5.6)."""
    mqid = await client.queue(b"q")
    await client.put(mqid, b"old")
    assert await client.ts()
    assert await client.dnq(mqid) == b"old"
    assert await other.delete(b"q")
    assert await other.create(b"q")
    assert await client.ta()
    assert await other.drain(await other.queue(b"q")) == []
