"""Test DNQ outside a transaction: when replies are settled (tmq.md 6)."""

from __future__ import annotations

import pytest

from protos import tmq
from services.store import Queue, QueueSpec
from services.store.model import records
from services.store.model.spec import Delivery
from services.store.pipeline.async_client import AsyncClient
from services.tmq.service import OWNER
from tests.live import until
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge

SHORT_TTL_MS = 2_000  # longer than any delay between putting and taking a message on a busy machine


async def settled(edge: LiveEdge, name: str, count: int) -> bool:
    return bool((await edge.stats(name))["acked"] == count)


async def ready(edge: LiveEdge, name: str, count: int) -> bool:
    return bool((await edge.stats(name))["ready"] == count)


async def test_reply_is_leased_until_the_next_request(edge: LiveEdge, client: Client) -> None:
    """Check that a delivered message stays leased until the client's next request (6.1)."""
    mqid = await client.queue(b"q")
    await client.put(mqid, b"1")
    assert await client.dnq(mqid) == b"1"
    assert (await edge.stats("q"))["in_flight"] == 1
    assert await client.select(mqid) == 0
    await until(lambda: settled(edge, "q", 1))


async def test_unfinished_request_settles_nothing(edge: LiveEdge, client: Client, other: Client) -> None:
    """Check that only a complete valid request settles a message (6.1)."""
    mqid = await client.queue(b"q")
    await client.put(mqid, b"1")
    assert await client.dnq(mqid) == b"1"
    await edge.deliver("document", client, tmq.encode_dnq(mqid)[:-1])
    client.reset()
    await until(lambda: ready(edge, "q", 1))
    assert await other.drain(await other.queue(b"q")) == [b"1"]


async def test_unknown_code_settles_nothing(edge: LiveEdge, client: Client) -> None:
    """Check that an unknown code does not settle a message (6.1, 3.2)."""
    mqid = await client.queue(b"q")
    await client.put(mqid, b"1")
    assert await client.dnq(mqid) == b"1"
    await client.send(b"\xff")
    assert await client.ended() in ("fin", "reset")
    client.close()
    await until(lambda: ready(edge, "q", 1))


@pytest.mark.parametrize("listener", ["document", "reference"])
async def test_reset_returns_the_message_to_the_front(edge: LiveEdge, listener: str) -> None:
    """Check that a reset returns an unsettled message to the front of the queue (6.1)."""
    client, other = await edge.client(listener), await edge.client(listener)
    mine, theirs = await client.queue(b"q"), await other.queue(b"q")
    await client.put(mine, b"1", b"2")
    assert await client.dnq(mine) == b"1"
    client.reset()
    await until(lambda: ready(edge, "q", 2))
    assert await other.drain(theirs) == [b"1", b"2"]


async def test_fin_does_not_settle_undelivered_replies(make_edge: MakeEdge) -> None:
    """Check that a FIN does not settle a message larger than the buffers of a client that reads nothing (6.1)."""
    edge = await make_edge(eof_grace_s=0.1, listeners={"document": {"port": 0, "write_timeout_s": 0.5}})
    client, other = await edge.client(receive_buffer=4096), await edge.client()
    mqid, theirs = await client.queue(b"q"), await other.queue(b"q")
    large = bytes(1 << 20)
    for _ in range(8):
        await other.put(theirs, large)
    await client.send(tmq.encode_dnq(mqid) * 8)
    client.fin()
    await until(lambda: edge.refusals()["write_timeout"] >= 1)
    client.close()
    await until(lambda: ready(edge, "q", 8))


async def test_replies_beyond_the_limit_are_minus_one(make_edge: MakeEdge) -> None:
    """Check that a DNQ beyond max_unsettled is answered with -1 (6.1)."""
    edge = await make_edge(max_unsettled=3)
    client = await edge.client()
    mqid = await client.queue(b"q")
    await client.put(mqid, *(b"%d" % n for n in range(5)))
    assert await client.messages(mqid, 5) == [b"0", b"1", b"2", None, None]
    assert edge.refusals()["too_many_unsettled"] == 1
    assert await client.drain(mqid) == [b"3", b"4"]


async def test_pipelined_dnqs_come_in_order_then_minus_one(client: Client) -> None:
    """Check that pipelined DNQs return messages in order, and then -1 (6.1, 1.2)."""
    mqid = await client.queue(b"q")
    await client.put(mqid, *(b"%d" % n for n in range(300)))
    assert await client.messages(mqid, 302) == [*(b"%d" % n for n in range(300)), None, None]


async def test_pipelined_requests_are_done_in_order(client: Client) -> None:
    """Check that a DNQ does not see an ENQ that was sent after it (1.2)."""
    mqid = await client.queue(b"q")
    await client.send(
        tmq.encode_dnq(mqid), tmq.encode_enq(mqid, b"later"), tmq.encode_dnq(mqid), tmq.encode_select(mqid)
    )
    assert await client.message() is None
    assert await client.read(1) == b"\1"
    assert await client.message() == b"later"
    assert await client.read(8) == bytes(8)


async def test_many_large_messages_asked_for_at_once(client: Client) -> None:
    """Check that pipelined DNQs return more octets than one call to the store may carry (6.1)."""
    mqid = await client.queue(b"q")
    bodies = [bytes([n]) * (900 << 10) for n in range(12)]
    for body in bodies:
        await client.put(mqid, body)
    assert await client.messages(mqid, 13) == [*bodies, None]


async def test_large_messages_for_many_clients(edge: LiveEdge, client: Client) -> None:
    """Check that a DNQ is never answered with -1 because other clients' messages filled the store's reply (3)."""
    mqid = await client.queue(b"q")
    for number in range(20):
        await client.put(mqid, bytes([number]) * (1 << 20))
    crowd = [await edge.client() for _ in range(10)]
    for one in crowd:
        await one.queue(b"q")
    for one in crowd:
        await one.send(tmq.encode_dnq(mqid) * 2)
    found = [await one.message() for one in crowd for _ in range(2)]
    assert sorted(body[:1] for body in found if body) == [bytes([number]) for number in range(20)]


async def test_message_after_many_expired_ones_is_found(edge: LiveEdge, client: Client) -> None:
    """Check that a DNQ finds a message after more expired ones than the store examines in one step (3)."""
    await edge.declare("short", message_ttl=f"{SHORT_TTL_MS}ms")
    mqid = await client.queue(b"short")
    await client.put(mqid, *([b"old"] * 2_500))
    all_expired_ms = await edge.tools.now_ms() + SHORT_TTL_MS
    await until(lambda: is_past(edge, all_expired_ms))
    await client.put(mqid, b"fresh")
    assert await client.dnq(mqid) == b"fresh"


async def is_past(edge: LiveEdge, time_ms: int) -> bool:
    """Return whether a time has passed by the store's clock."""
    return await edge.tools.now_ms() > time_ms


async def test_at_most_once_is_settled_before_it_is_sent(edge: LiveEdge, client: Client) -> None:
    """Check that a message of an at-most-once queue is settled before it is sent (6.1)."""
    await edge.declare("once", delivery=Delivery.AT_MOST_ONCE)
    mqid = await client.queue(b"once")
    await client.put(mqid, b"1", b"2")
    assert await client.dnq(mqid) == b"1"
    assert (await edge.stats("once"))["acked"] == 1
    client.reset()
    await until(lambda: edge.is_free(queue_of(edge, "once")))
    assert (await edge.stats("once"))["ready"] == 1


def queue_of(edge: LiveEdge, name: str) -> Queue:
    return next(queue for queue in edge.tools.catalogue.known() if queue.name == name)


async def test_message_for_a_disconnected_client_is_returned(
    edge: LiveEdge, client: Client, other: Client
) -> None:
    """Check that a message that was taken for a disconnected client is returned (6.2)."""
    mqid = await client.queue(b"q")
    await client.put(mqid, *(b"%d" % n for n in range(50)))
    for _ in range(20):
        hasty = await edge.client()
        await hasty.send(tmq.encode_open(b"q"), tmq.encode_dnq(mqid) * 10)
        hasty.reset()
    await until(lambda: ready(edge, "q", 50))
    assert await other.drain(await other.queue(b"q")) == [b"%d" % n for n in range(50)]


async def test_attributes_of_other_protocols_are_dropped(edge: LiveEdge, client: Client) -> None:
    """Check that a DNQ returns only the body of a message with attributes (3)."""
    queue = await edge.declare("mixed")
    bodies = [b"plain", b"with", b"", b"more"]
    made = [records.encode(body, {"priority": n} if n % 2 else None) for n, body in enumerate(bodies)]
    domain = edge.tools.open_domain()
    await domain.pipe.ready()
    assert await AsyncClient(domain.pipe).publish(queue, made, "test") == []
    mqid = await client.queue(b"mixed")
    assert await client.messages(mqid, 5) == [*bodies, None]


async def test_paused_queue_delivers_and_accepts_nothing(edge: LiveEdge, client: Client) -> None:
    """Check that ENQ and DNQ fail on a paused queue (7.2)."""
    await edge.declare("paused", paused=True)
    mqid = await client.queue(b"paused")
    assert not await client.enq(mqid, b"1")
    assert await client.dnq(mqid) is None
    assert edge.refusals()["queue_paused"] == 1


async def test_full_queue_refuses_further_messages(edge: LiveEdge, client: Client) -> None:
    """Check that ENQ fails on a full queue (7.2)."""
    await edge.declare("full", max_length=3)
    mqid = await client.queue(b"full")
    await client.send(*(tmq.encode_enq(mqid, b"%d" % n) for n in range(5)))
    assert await client.read(5) == b"\1\1\1\0\0"
    assert await client.drain(mqid) == [b"0", b"1", b"2"]
    assert edge.refusals()["queue_full"] == 1
    assert await edge.requests("enq", "ok") == 3
    assert await edge.requests("enq", "failed") == 2


async def test_delete_needs_a_queue_made_by_create(edge: LiveEdge, client: Client) -> None:
    """Check that DELETE fails on a queue that CREATE has not made (3)."""
    await edge.declare("theirs", owner="cli")
    assert not await client.delete(b"theirs")
    assert await client.open(b"theirs") is not None
    assert not await client.delete(b"missing")


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "not open"])
async def test_queue_with_another_owner_is_not_deleted(
    edge: LiveEdge, client: Client, other: Client, is_open: bool
) -> None:
    """Check that DELETE fails on a queue that was made by CREATE and then declared by another owner (3)."""
    assert await client.create(b"claimed")
    if is_open:
        assert await other.open(b"claimed") is not None
    _, new = await edge.tools.catalogue.declare("claimed", QueueSpec(), "file", replace=True)
    assert not new
    assert not await client.delete(b"claimed")
    assert edge.refusals()["not_owner"] == 1
    assert await client.open(b"claimed") is not None
    await edge.tools.catalogue.declare("claimed", QueueSpec(), OWNER, replace=True)
    assert await client.delete(b"claimed")


async def test_create_can_be_forbidden(make_edge: MakeEdge) -> None:
    """Check that CREATE fails if settings forbid it (3)."""
    edge = await make_edge(create={"allowed": False})
    client = await edge.client()
    assert not await client.create(b"q")
    assert await client.open(b"q") is None
