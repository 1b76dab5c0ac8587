"""Settlements by request id (ring.md 5.4, docs/store.md)."""

from __future__ import annotations

import asyncio

import pytest

from services.store import Outcome
from services.store.model.errors import (
    LeaseLost,
)
from services.store.model.requests import Nothing, Pulled, Settlement
from tests.store.desk import Desk, numbered
from tests.store.requesting import Node, given, queue_counts, request_id

STORED, AGAIN = Outcome.STORED, Outcome.AGAIN
A, B, C = request_id(1), request_id(2), request_id(3)


@pytest.fixture
def node(desk: Desk) -> Node:
    return Node(desk)


async def test_any_process_settles_by_request_id(desk: Desk, node: Node) -> None:
    """Check that any process of the store settles by the request's id."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    answer = await node.pull(A, queue)
    await node.pull(B, queue)
    assert isinstance(answer, Pulled)
    async with desk.another() as other:
        other_node = Node(other)
        assert await other_node.settle(A, queue) is Settlement.SETTLED
        assert await other_node.settle(A, queue) is Settlement.AGAIN
        assert await node.settle(A, queue) is Settlement.AGAIN
        assert await other_node.settle(C, queue) is Settlement.UNKNOWN
        assert await other_node.pull(A, queue) is Nothing.EXPIRED
        held = await desk.domain.link.call("SMEMBERS", desk.domain.keys.lots(desk.pipe.session))
        assert len(held) == 1, "what another one settled is not among ours any more"
        assert await queue_counts(desk, queue) == (1, 1, 1)
        assert await node.settle(B, queue) is Settlement.SETTLED
    with pytest.raises(LeaseLost):
        await desk.settle([answer.delivery])
    assert await desk.domain.link.call("EXISTS", desk.domain.keys.lots(desk.pipe.session)) == 0
    assert not any((await desk.reconcile(queue)).values())
    assert await desk.drain(queue) == [b"m00002"]


async def test_settlement_is_remembered_as_long_as_its_pull(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"x")
    await node.pull(A, queue, keep_ms=50_000)
    await node.settle(A, queue)
    assert 0 < await desk.domain.link.call("PTTL", desk.domain.keys.request(A)) <= 50_000


async def test_one_message_of_an_entry_is_settled_alone(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(40))
    ids = [request_id(100 + n) for n in range(40)]
    pulled = [given(await node.pull(one, queue))[0] for one in ids]
    assert pulled == numbered(40)
    for one in ids[1::2]:
        assert await node.settle(one, queue) is Settlement.SETTLED
    assert await queue_counts(desk, queue) == (0, 20, 20)
    for n, one in enumerate(ids):
        answer = await node.pull(one, queue)
        assert answer is Nothing.EXPIRED if n % 2 else given(answer) == (b"m%05d" % n, True)
    await desk.reconcile(queue, straggler_ms=-1000)
    assert given(await node.pull(ids[0], queue)) == (b"m00000", True), "also when the entry was thinned out"
    for one in ids[::2]:
        assert await node.settle(one, queue) is Settlement.SETTLED
    assert not any((await desk.reconcile(queue)).values())
    assert (await desk.stats(queue))["bytes"] == 0


async def test_at_most_once_pull_is_settled_first(desk: Desk, node: Node) -> None:
    """Check that no repeat delivers an at-most-once message a second time (docs/guarantees.md)."""
    queue = await desk.queue(delivery="at-most-once")
    await desk.put(queue, b"x")
    answer = await node.pull(A, queue)
    assert isinstance(answer, Pulled)
    assert answer.delivery.settled
    assert await queue_counts(desk, queue) == (0, 0, 1)
    assert await node.pull(A, queue) is Nothing.EXPIRED
    assert await node.settle(A, queue) is Settlement.AGAIN
    await desk.put(queue, b"y")
    async with desk.another() as other:
        both = await asyncio.gather(
            node.pull(B, queue), Node(other).pull(B, queue), Node(other).pull(B, queue)
        )
    assert sorted(type(one).__name__ for one in both) == ["Nothing", "Nothing", "Pulled"]


async def test_requests_keep_their_order(desk: Desk) -> None:
    """Check that requests of one source are executed in sequence (tmq.md 1.2)."""
    queue = await desk.queue()
    node = Node(desk, desk.source)
    put = desk.publishing(queue, b"0")
    results = await asyncio.gather(node.push(A, queue, b"1"), node.pull(B, queue), node.push(C, queue, b"2"))
    assert (await put, results[0], results[2]) == ([], STORED, STORED)
    assert given(results[1]) == (b"0", False)
    assert await desk.drain(queue) == [b"1", b"2"]


async def test_pulls_of_one_call_get_different_messages(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(150))
    ids = [request_id(1000 + n) for n in range(200)]
    results = await asyncio.gather(*(node.pull(one, queue) for one in ids))
    assert [given(one)[0] for one in results[:150]] == numbered(150)
    assert set(results[150:]) == {Nothing.EMPTY}
    settled = await asyncio.gather(*(node.settle(one, queue) for one in ids))
    assert settled == [Settlement.SETTLED] * 150 + [Settlement.UNKNOWN] * 50
    assert await queue_counts(desk, queue) == (0, 0, 150)
