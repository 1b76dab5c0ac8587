"""Pulls by request id lease one message, and repeats return the same (ring.md 5.4, docs/store.md)."""

from __future__ import annotations

import asyncio

import pytest

from services.store import Outcome, QueueSpec
from services.store.model import records
from services.store.model.errors import (
    MessageTooLarge,
)
from services.store.model.requests import Nothing, Pulled, Settlement
from tests.store.desk import Desk, bodies, encode, numbered, until
from tests.store.requesting import Node, given, kept, queue_counts, request_id

STORED, AGAIN = Outcome.STORED, Outcome.AGAIN
A, B, C = request_id(1), request_id(2), request_id(3)


@pytest.fixture
def node(desk: Desk) -> Node:
    return Node(desk)


async def test_repeated_pull_returns_the_same_message(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    assert given(await node.pull(A, queue)) == (b"m00000", False)
    async with desk.another() as other:
        assert given(await Node(other).pull(A, queue)) == (b"m00000", True)
        assert given(await Node(other).pull(B, queue)) == (b"m00001", False)
    assert given(await node.pull(A, queue)) == (b"m00000", True)
    assert await queue_counts(desk, queue) == (1, 2, 0)


async def test_repeated_pull_is_the_same_delivery(desk: Desk, node: Node) -> None:
    """Check that a repeat has the same attributes, counts, note and time, for new and returned messages."""
    queue = await desk.queue()
    record = records.encode(b"body", {"type": 3})
    desk.pipe.messages.publish(desk.source, queue, [*encode(b"first"), record], "test 1", lambda _: None)
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


async def test_pull_records_stay_small(desk: Desk, node: Node) -> None:
    """Check that bodies are kept neither with the id nor with the session's last reply."""
    queue = await desk.queue()
    await desk.put(queue, b"x" * 100_000)
    body, _ = given(await node.pull(A, queue, largest=1 << 20))
    assert len(body) == 100_000
    found = await kept(desk, A)
    assert found is not None
    assert len(found) < 60
    lane = await desk.domain.link.call("HVALS", desk.domain.keys.lane(desk.pipe.session))
    assert sum(map(len, lane)) < 2000


async def test_repeated_pull_of_an_empty_queue(desk: Desk, node: Node) -> None:
    """Check that a repeated pull of an empty queue stays empty, as the ERROR is on its way (ring.md 5.2)."""
    queue = await desk.queue()
    assert await node.pull(A, queue, keep_ms=24 * 3_600_000) is Nothing.EMPTY
    await desk.put(queue, b"x")
    assert await node.pull(A, queue) is Nothing.EMPTY
    assert await node.settle(A, queue) is Settlement.UNKNOWN
    assert given(await node.pull(B, queue)) == (b"x", False)
    ttl = await desk.domain.link.call("PTTL", desk.domain.keys.request(A))
    assert ttl <= 600_000, "polling leaves few keys"


async def test_paused_queue_refuses_pulls(desk: Desk, node: Node) -> None:
    queue = await desk.queue(paused=True)
    assert await node.pull(A, queue) is Nothing.EMPTY


async def test_pull_skips_expired_messages(desk: Desk, node: Node) -> None:
    queue = await desk.queue(message_ttl="300ms")
    await desk.put(queue, *numbered(2100))
    await asyncio.sleep(0.35)
    await desk.store.catalogue.declare("orders", QueueSpec(message_ttl="60s"), "test", replace=True)
    await desk.put(queue, b"young")
    await desk.store.catalogue.declare("orders", QueueSpec(message_ttl="300ms"), "test", replace=True)
    answer = await node.pull(A, queue)
    if answer is Nothing.EMPTY:  # on a slow machine, the younger one has expired too
        assert (await desk.stats(queue))["expired"] == 2101
    else:
        assert given(answer) == (b"young", False)
        assert (await desk.stats(queue))["expired"] == 2100


async def test_too_large_message_stays_in_the_queue(desk: Desk, node: Node) -> None:
    """Check that a too large message stays; attributes do not count, as they are not sent (ring.md 5.4)."""
    queue = await desk.queue(max_deliveries=1)
    record = records.encode(b"x" * 1000, {"much": "y" * 500})
    assert await desk.publish(queue, b"z" * 1001) == []
    desk.pipe.messages.publish(desk.source, queue, [record], "t", lambda _: None)
    for _ in range(2):
        with pytest.raises(MessageTooLarge):
            await node.pull(A, queue, largest=1000)
    assert await node.settle(A, queue) is Settlement.UNKNOWN
    (first,) = await desk.take(queue, 1)
    assert bodies([first]) == [b"z" * 1001]
    assert (first.acquired, first.failed) == (2, 0), "it does not count as failed"
    assert given(await node.pull(B, queue, largest=1000)) == (b"x" * 1000, False)
    assert await desk.domain.link.call("SCARD", desk.domain.keys.lots(desk.pipe.session)) == 2
    await desk.settle([first])
    await node.settle(B, queue)
    assert await desk.domain.link.call("SCARD", desk.domain.keys.lots(desk.pipe.session)) == 0


async def test_returned_message_is_not_given_to_a_repeated_pull(desk: Desk, node: Node) -> None:
    """Check that a returned message, which another client may have, is not given to a repeated pull."""
    queue = await desk.queue()
    await desk.put(queue, b"x")
    answer = await node.pull(A, queue)
    assert isinstance(answer, Pulled)
    await desk.release([answer.delivery], failed=True)
    assert await node.pull(A, queue) is Nothing.EXPIRED
    assert await node.settle(A, queue) is Settlement.EXPIRED
    second = await node.pull(B, queue)
    assert given(second) == (b"x", False)
    assert await node.pull(A, queue) is Nothing.EXPIRED
    assert await node.settle(A, queue) is Settlement.EXPIRED
    assert await queue_counts(desk, queue) == (0, 1, 0)


async def test_recreated_queue_forgets_old_pulls(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"x")
    await node.pull(A, queue)
    await desk.store.catalogue.delete(queue)
    newer = await desk.queue()
    await desk.put(newer, b"y", b"z")
    await desk.take(newer, 1)  # leased under the numbers that the old one's had
    for one in (queue, newer):
        assert await node.pull(A, one) is Nothing.EXPIRED
        assert await node.settle(A, one) is Settlement.EXPIRED
    assert await queue_counts(desk, newer) == (1, 1, 0)


async def test_dead_process_returns_pulled_messages(desk: Desk, node: Node) -> None:
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
