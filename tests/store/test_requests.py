"""Requests of a ring: done once under their id, and answered again (ring.md 5.4, docs/store.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from services.store import Outcome, Queue, QueueSpec, StoreError, records
from services.store.errors import (
    AckLevelLost,
    BatchDiffers,
    LeaseLost,
    MessageTooLarge,
    QueueFull,
    QueuePaused,
    QueueReserved,
    QueueUnknown,
    StoreFull,
)
from services.store.requests import NO_ID, Nothing, Pulled, Settlement
from tests.servers import Server
from tests.store.desk import Desk, bodies, encode, numbered, until
from tests.store.requesting import KEEP_MS, Node, request_id

STORED, AGAIN = Outcome.STORED, Outcome.AGAIN
A, B, C = request_id(1), request_id(2), request_id(3)


@pytest.fixture
def node(desk: Desk) -> Node:
    return Node(desk)


def given(told: Pulled | Nothing) -> tuple[bytes, bool]:
    """Body, and whether it was told again."""
    assert isinstance(told, Pulled)
    (body,) = bodies([told.delivery])
    return body, told.again


async def kept(desk: Desk, request: bytes = A) -> bytes | None:
    found: bytes | None = await desk.domain.link.call("GET", desk.domain.keys.request(request))
    return found


async def looks(desk: Desk, queue: Queue) -> tuple[int, int, int]:
    """ready, in flight, settled"""
    stats = await desk.stats(queue)
    return stats["ready"], stats["in_flight"], stats["acked"]


# push


async def test_a_push_counts_once_whoever_repeats_it(desk: Desk, node: Node) -> None:
    """A repeat after a break comes to any process of the store."""
    queue = await desk.queue()
    assert await node.push(A, queue, b"a") is STORED
    async with desk.another() as other:
        assert await Node(other).push(A, queue, b"a") is AGAIN
        assert await Node(other).push(B, queue, b"b") is STORED
    assert await desk.drain(queue) == [b"a", b"b"]
    assert await node.push(A, queue, b"a") is AGAIN, "also when it has been taken out"
    assert (await desk.stats(queue))["duplicates"] == 2


async def reserve(desk: Desk, queue: Queue) -> None:
    await desk.domain.reserve(queue, "mca 7", 60_000)


async def nothing(_: Desk, __: Queue) -> None:
    return None


REFUSED: list[tuple[dict[str, Any], Any, type[StoreError], str]] = [
    ({"max_length": 1}, nothing, QueueFull, "FULL"),
    ({"max_bytes": 10}, nothing, QueueFull, "FULL"),
    ({"paused": True}, nothing, QueuePaused, "PAUSED"),
    ({"remote": {"protocol": "rqp-cast", "key": 1, "maxMessageBytes": 3}}, nothing, MessageTooLarge, "LARGE"),
    ({}, reserve, QueueReserved, "RESERVED"),
]


@pytest.mark.parametrize(("spec", "first", "wanted", "why"), REFUSED)
async def test_what_was_refused_is_refused_again(
    desk: Desk,
    node: Node,
    spec: dict[str, Any],
    first: Callable[[Desk, Queue], Any],
    wanted: type[StoreError],
    why: str,
) -> None:
    """The ERROR is on its way round the ring already: the push must not be done after it."""
    queue = await desk.queue()
    await desk.put(queue, b"in the way")
    changed, _ = await desk.store.declare("orders", QueueSpec.model_validate(spec), "test", replace=True)
    await first(desk, changed)
    with pytest.raises(wanted):
        await node.push(A, queue, b"refused")
    assert await kept(desk) == f"push {why}".encode()
    await desk.store.delete(queue)
    queue = await desk.queue()
    with pytest.raises(wanted):
        await node.push(A, queue, b"refused")
    assert await node.push(B, queue, b"asked anew") is STORED
    assert await desk.drain(queue) == [b"asked anew"]
    assert desk.refusals[wanted.reason] == 2


async def test_a_queue_that_is_gone_is_not_remembered(desk: Desk, node: Node) -> None:
    """ring.md 5.3: then another node serves it, or this one again."""
    queue = await desk.queue()
    await desk.store.delete(queue)
    for told in (node.push(A, queue, b"x"), node.pull(B, queue)):
        with pytest.raises(QueueUnknown):
            await told
    assert (await kept(desk), await kept(desk, B)) == (None, None)
    assert await node.push(A, await desk.queue(), b"x") is STORED


async def test_it_was_done_also_if_the_queue_is_gone_since(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await node.push(A, queue, b"x")
    await desk.store.delete(queue)
    assert await node.push(A, queue, b"x") is AGAIN


async def test_a_store_that_takes_nothing_remembers_nothing(own_server: Server) -> None:
    """ring.md 4.7: nobody is answered, and every refusal that were kept would take memory that is short."""
    async with Desk(own_server) as desk:
        queue, node = await desk.queue(ack_level="memory"), Node(desk)
        await desk.put(queue, b"held")
        own_server.call("CONFIG", "SET", "maxmemory", "1mb")
        await until(lambda: _refused(desk, queue))
        with pytest.raises(StoreFull):
            await node.push(A, queue, b"x")
        assert await kept(desk) is None
        assert given(await node.pull(B, queue)) == (b"held", False), "what takes out goes on"
        assert await node.settle(B, queue) is Settlement.SETTLED
        own_server.call("CONFIG", "SET", "maxmemory", "0")
        assert await until(lambda: _stored(node, queue)) is True


async def _refused(desk: Desk, queue: Queue) -> bool:
    """What the server says of its memory is looked at every 5 ms."""
    return await desk.publish(queue, b"early") != []


async def _stored(node: Node, queue: Queue) -> bool:
    try:
        return await node.push(A, queue, b"x") in (STORED, AGAIN)
    except StoreFull:
        return False


async def test_a_promise_that_is_lost_is_not_remembered(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    queue.unkept = True
    with pytest.raises(AckLevelLost):
        await node.push(A, queue, b"x")
    assert await kept(desk) is None


async def test_it_is_forgotten_in_time(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    assert await node.push(A, queue, b"a", keep_ms=1) is STORED

    async def stored() -> bool:
        return await node.push(A, queue, b"a") is STORED

    await until(stored)
    assert KEEP_MS - 30_000 < await desk.domain.link.call("PTTL", desk.domain.keys.request(A)) <= KEEP_MS


@pytest.mark.parametrize("request_", [b"", b"x" * 15, b"x" * 17, NO_ID])
async def test_what_is_no_id_is_refused(desk: Desk, node: Node, request_: bytes) -> None:
    """ring.md 5.3: all zero is none."""
    queue = await desk.queue()
    for told in (node.push(request_, queue, b""), node.pull(request_, queue), node.settle(request_, queue)):
        with pytest.raises(ValueError, match="16 octets"):
            await told


async def test_an_id_is_of_one_kind_of_request(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await node.push(A, queue, b"x")
    with pytest.raises(BatchDiffers):
        await node.pull(A, queue)
    assert await node.settle(A, queue) is Settlement.UNKNOWN
    assert given(await node.pull(B, queue)) == (b"x", False)
    with pytest.raises(BatchDiffers):
        await node.push(B, queue, b"y")
    assert await node.settle(B, queue) is Settlement.SETTLED


# pull


async def test_a_pull_leases_one_message_and_gives_it_again(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    assert given(await node.pull(A, queue)) == (b"m00000", False)
    async with desk.another() as other:
        assert given(await Node(other).pull(A, queue)) == (b"m00000", True)
        assert given(await Node(other).pull(B, queue)) == (b"m00001", False)
    assert given(await node.pull(A, queue)) == (b"m00000", True)
    assert await looks(desk, queue) == (1, 2, 0)


async def test_what_is_told_again_is_the_same_delivery(desk: Desk, node: Node) -> None:
    """With its attributes, counts, note and time; of an entry of many, and of what was returned."""
    queue = await desk.queue()
    record = records.encode(b"body", {"type": 3})
    desk.pipe.publish(desk.source, queue, [*encode(b"first"), record], "test 1", lambda _: None)
    got = await desk.take(queue)
    await desk.settle([got[0].cut(1)[0]])
    (held,) = [got[0].cut(1)[1]]
    await desk.note(held, "noted")
    await desk.release([held], failed=True)
    first, second = await node.pull(A, queue), await node.pull(A, queue)
    assert isinstance(first, Pulled)
    assert isinstance(second, Pulled)
    assert first.delivery == second.delivery
    d = second.delivery
    assert (d.acquired, d.failed, d.note, d.origin) == (2, 1, "noted", "test 1")
    assert records.decode(d.records()[0]).attributes == {"type": 3}


async def test_a_lease_is_small_whatever_the_message_is(desk: Desk, node: Node) -> None:
    """No body stands under the id, nor among the answers that the session's lane keeps."""
    queue = await desk.queue()
    await desk.put(queue, b"x" * 100_000)
    body, _ = given(await node.pull(A, queue, largest=1 << 20))
    assert len(body) == 100_000
    found = await kept(desk)
    assert found is not None
    assert len(found) < 60
    lane = await desk.domain.link.call("HVALS", desk.domain.keys.lane(desk.pipe.session))
    assert sum(map(len, lane)) < 2000


async def test_an_empty_queue_is_empty_again(desk: Desk, node: Node) -> None:
    """ring.md 5.2: the ERROR is on its way; what comes in later is for others."""
    queue = await desk.queue()
    assert await node.pull(A, queue, keep_ms=24 * 3_600_000) is Nothing.EMPTY
    await desk.put(queue, b"x")
    assert await node.pull(A, queue) is Nothing.EMPTY
    assert await node.settle(A, queue) is Settlement.UNKNOWN
    assert given(await node.pull(B, queue)) == (b"x", False)
    ttl = await desk.domain.link.call("PTTL", desk.domain.keys.request(A))
    assert ttl <= 600_000, "whoever polls leaves little behind"


async def test_a_paused_queue_gives_nothing(desk: Desk, node: Node) -> None:
    queue = await desk.queue(paused=True)
    assert await node.pull(A, queue) is Nothing.EMPTY


async def test_what_has_expired_is_looked_past(desk: Desk, node: Node) -> None:
    queue = await desk.queue(message_ttl="300ms")
    await desk.put(queue, *numbered(2100))
    await asyncio.sleep(0.35)
    await desk.store.declare("orders", QueueSpec(message_ttl="60s"), "test", replace=True)
    await desk.put(queue, b"young")
    await desk.store.declare("orders", QueueSpec(message_ttl="300ms"), "test", replace=True)
    told = await node.pull(A, queue)
    if told is Nothing.EMPTY:  # the machine was slow: the young one is old by now, too
        assert (await desk.stats(queue))["expired"] == 2101
    else:
        assert given(told) == (b"young", False)
        assert (await desk.stats(queue))["expired"] == 2100


async def test_a_message_that_is_too_large_stays_where_it_is(desk: Desk, node: Node) -> None:
    """ring.md 5.4: ERROR, returned. Its attributes do not count, as they do not travel."""
    queue = await desk.queue(max_deliveries=1)
    record = records.encode(b"x" * 1000, {"much": "y" * 500})
    assert await desk.publish(queue, b"z" * 1001) == []
    desk.pipe.publish(desk.source, queue, [record], "t", lambda _: None)
    for _ in range(2):
        with pytest.raises(MessageTooLarge):
            await node.pull(A, queue, largest=1000)
    assert await node.settle(A, queue) is Settlement.UNKNOWN
    (first,) = await desk.take(queue, 1)
    assert bodies([first]) == [b"z" * 1001]
    assert (first.acquired, first.failed) == (2, 0), "it is nobody's fault"
    assert given(await node.pull(B, queue, largest=1000)) == (b"x" * 1000, False)
    assert await desk.domain.link.call("SCARD", desk.domain.keys.lots(desk.pipe.session)) == 2
    await desk.settle([first])
    await node.settle(B, queue)
    assert await desk.domain.link.call("SCARD", desk.domain.keys.lots(desk.pipe.session)) == 0


async def test_what_went_back_is_not_given_again(desk: Desk, node: Node) -> None:
    """Somebody else may have it by now."""
    queue = await desk.queue()
    await desk.put(queue, b"x")
    told = await node.pull(A, queue)
    assert isinstance(told, Pulled)
    await desk.release([told.delivery], failed=True)
    assert await node.pull(A, queue) is Nothing.EXPIRED
    assert await node.settle(A, queue) is Settlement.EXPIRED
    second = await node.pull(B, queue)
    assert given(second) == (b"x", False)
    assert await node.pull(A, queue) is Nothing.EXPIRED
    assert await node.settle(A, queue) is Settlement.EXPIRED
    assert await looks(desk, queue) == (0, 1, 0)


async def test_a_queue_made_anew_has_nothing_of_the_old_ones(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"x")
    await node.pull(A, queue)
    await desk.store.delete(queue)
    newer = await desk.queue()
    await desk.put(newer, b"y", b"z")
    await desk.take(newer, 1)  # leased under the numbers that the old one's had
    for one in (queue, newer):
        assert await node.pull(A, one) is Nothing.EXPIRED
        assert await node.settle(A, one) is Settlement.EXPIRED
    assert await looks(desk, newer) == (1, 1, 0)


async def test_the_dead_give_back_what_they_pulled(desk: Desk, node: Node) -> None:
    queue = await desk.queue(visibility_timeout="1ms")
    await desk.put(queue, b"x")
    async with desk.another() as other:
        assert given(await Node(other).pull(A, queue)) == (b"x", False)
        assert given(await node.pull(A, queue)) == (b"x", True)

    async def back() -> bool:
        await desk.domain.sweep()
        return (await desk.stats(queue))["ready"] == 1

    await until(back)
    assert await node.pull(A, queue) is Nothing.EXPIRED
    assert await node.settle(A, queue) is Settlement.EXPIRED


# settle


async def test_the_id_settles_whoever_leases(desk: Desk, node: Node) -> None:
    """The settlement comes to whichever process of the store is first in the ring."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    told = await node.pull(A, queue)
    await node.pull(B, queue)
    assert isinstance(told, Pulled)
    async with desk.another() as other:
        stranger = Node(other)
        assert await stranger.settle(A, queue) is Settlement.SETTLED
        assert await stranger.settle(A, queue) is Settlement.AGAIN
        assert await node.settle(A, queue) is Settlement.AGAIN
        assert await stranger.settle(C, queue) is Settlement.UNKNOWN
        assert await stranger.pull(A, queue) is Nothing.EXPIRED
        held = await desk.domain.link.call("SMEMBERS", desk.domain.keys.lots(desk.pipe.session))
        assert len(held) == 1, "what another one settled is not among ours any more"
        assert await looks(desk, queue) == (1, 1, 1)
        assert await node.settle(B, queue) is Settlement.SETTLED
    with pytest.raises(LeaseLost):
        await desk.settle([told.delivery])
    assert await desk.domain.link.call("EXISTS", desk.domain.keys.lots(desk.pipe.session)) == 0
    assert not any((await desk.reconcile(queue)).values())
    assert await desk.drain(queue) == [b"m00002"]


async def test_what_was_settled_stays_known_no_longer_than_its_pull(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"x")
    await node.pull(A, queue, keep_ms=50_000)
    await node.settle(A, queue)
    assert 0 < await desk.domain.link.call("PTTL", desk.domain.keys.request(A)) <= 50_000


async def test_one_of_many_in_an_entry_is_settled_alone(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(40))
    ids = [request_id(100 + n) for n in range(40)]
    pulled = [given(await node.pull(one, queue))[0] for one in ids]
    assert pulled == numbered(40)
    for one in ids[1::2]:
        assert await node.settle(one, queue) is Settlement.SETTLED
    assert await looks(desk, queue) == (0, 20, 20)
    for n, one in enumerate(ids):
        told = await node.pull(one, queue)
        assert told is Nothing.EXPIRED if n % 2 else given(told) == (b"m%05d" % n, True)
    await desk.reconcile(queue, straggler_ms=-1000)
    assert given(await node.pull(ids[0], queue)) == (b"m00000", True), "also when the entry was thinned out"
    for one in ids[::2]:
        assert await node.settle(one, queue) is Settlement.SETTLED
    assert not any((await desk.reconcile(queue)).values())
    assert (await desk.stats(queue))["bytes"] == 0


async def test_at_most_once_is_settled_before_it_is_shown(desk: Desk, node: Node) -> None:
    """docs/guarantees.md: of those who repeat, nobody sees it a second time."""
    queue = await desk.queue(delivery="at-most-once")
    await desk.put(queue, b"x")
    told = await node.pull(A, queue)
    assert isinstance(told, Pulled)
    assert told.delivery.settled
    assert await looks(desk, queue) == (0, 0, 1)
    assert await node.pull(A, queue) is Nothing.EXPIRED
    assert await node.settle(A, queue) is Settlement.AGAIN
    await desk.put(queue, b"y")
    async with desk.another() as other:
        both = await asyncio.gather(
            node.pull(B, queue), Node(other).pull(B, queue), Node(other).pull(B, queue)
        )
    assert sorted(type(one).__name__ for one in both) == ["Nothing", "Nothing", "Pulled"]


async def test_requests_keep_their_place_among_what_was_asked_before(desk: Desk) -> None:
    """tmq.md 1.2: one source's requests are done in sequence."""
    queue = await desk.queue()
    node = Node(desk, desk.source)
    put = desk.publishing(queue, b"0")
    told = await asyncio.gather(node.push(A, queue, b"1"), node.pull(B, queue), node.push(C, queue, b"2"))
    assert (await put, told[0], told[2]) == ([], STORED, STORED)
    assert given(told[1]) == (b"0", False)
    assert await desk.drain(queue) == [b"1", b"2"]


async def test_many_pulls_of_one_call_get_each_their_own(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(150))
    ids = [request_id(1000 + n) for n in range(200)]
    told = await asyncio.gather(*(node.pull(one, queue) for one in ids))
    assert [given(one)[0] for one in told[:150]] == numbered(150)
    assert set(told[150:]) == {Nothing.EMPTY}
    settled = await asyncio.gather(*(node.settle(one, queue) for one in ids))
    assert settled == [Settlement.SETTLED] * 150 + [Settlement.UNKNOWN] * 50
    assert await looks(desk, queue) == (0, 0, 150)
