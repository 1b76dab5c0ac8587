"""Requests of a ring are done once per id, and repeats get the same answer (ring.md 5.4, docs/store.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from services.store import Outcome, Queue, QueueSpec, StoreError
from services.store.model.errors import (
    AckLevelLost,
    BatchDiffers,
    MessageTooLarge,
    QueueFull,
    QueuePaused,
    QueueReserved,
    QueueUnknown,
    StoreFull,
)
from services.store.model.identities import NO_ID
from services.store.model.requests import Settlement
from tests.servers import Server
from tests.store.desk import Desk, until
from tests.store.requesting import KEEP_MS, Node, given, kept, request_id

STORED, AGAIN = Outcome.STORED, Outcome.AGAIN
A, B, C = request_id(1), request_id(2), request_id(3)


@pytest.fixture
def node(desk: Desk) -> Node:
    return Node(desk)


async def test_repeated_push_is_stored_once(desk: Desk, node: Node) -> None:
    """Check that a push is stored once, even if the repeat arrives at another process of the store."""
    queue = await desk.queue()
    assert await node.push(A, queue, b"a") is STORED
    async with desk.another() as other:
        assert await Node(other).push(A, queue, b"a") is AGAIN
        assert await Node(other).push(B, queue, b"b") is STORED
    assert await desk.drain(queue) == [b"a", b"b"]
    assert await node.push(A, queue, b"a") is AGAIN, "also when it has been taken out"
    assert (await desk.stats(queue))["duplicates"] == 2


async def reserve(desk: Desk, queue: Queue) -> None:
    await desk.domain.claims.reserve(queue, "mca 7", 60_000)


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
async def test_refused_push_is_refused_again(
    desk: Desk,
    node: Node,
    spec: dict[str, Any],
    first: Callable[[Desk, Queue], Any],
    wanted: type[StoreError],
    why: str,
) -> None:
    """Check that a refused push is refused again, as its ERROR is already on its way round the ring."""
    queue = await desk.queue()
    await desk.put(queue, b"in the way")
    changed, _ = await desk.store.catalogue.declare(
        "orders", QueueSpec.model_validate(spec), "test", replace=True
    )
    await first(desk, changed)
    with pytest.raises(wanted):
        await node.push(A, queue, b"refused")
    assert await kept(desk, A) == f"push {why}".encode()
    await desk.store.catalogue.delete(queue)
    queue = await desk.queue()
    with pytest.raises(wanted):
        await node.push(A, queue, b"refused")
    assert await node.push(B, queue, b"asked anew") is STORED
    assert await desk.drain(queue) == [b"asked anew"]
    assert desk.refusals[wanted.reason] == 2


async def test_unknown_queue_is_not_remembered(desk: Desk, node: Node) -> None:
    """Check that an unknown queue is not remembered, so that a node can serve it later (ring.md 5.3)."""
    queue = await desk.queue()
    await desk.store.catalogue.delete(queue)
    for answer in (node.push(A, queue, b"x"), node.pull(B, queue)):
        with pytest.raises(QueueUnknown):
            await answer
    assert (await kept(desk, A), await kept(desk, B)) == (None, None)
    assert await node.push(A, await desk.queue(), b"x") is STORED


async def test_push_is_known_after_queue_deletion(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await node.push(A, queue, b"x")
    await desk.store.catalogue.delete(queue)
    assert await node.push(A, queue, b"x") is AGAIN


async def test_full_store_remembers_no_request(own_server: Server) -> None:
    """Check that a full store remembers no request, as it sends no answer (ring.md 4.7)."""
    async with Desk(own_server) as desk:
        queue, node = await desk.queue(ack_level="memory"), Node(desk)
        await desk.put(queue, b"held")
        own_server.call("CONFIG", "SET", "maxmemory", "1mb")
        await until(lambda: _refused(desk, queue))
        with pytest.raises(StoreFull):
            await node.push(A, queue, b"x")
        assert await kept(desk, A) is None
        assert given(await node.pull(B, queue)) == (b"held", False), "what takes out goes on"
        assert await node.settle(B, queue) is Settlement.SETTLED
        own_server.call("CONFIG", "SET", "maxmemory", "0")
        assert await until(lambda: _stored(node, queue)) is True


async def _refused(desk: Desk, queue: Queue) -> bool:
    """Return whether the store refuses messages; it checks its memory every 5 ms."""
    return await desk.publish(queue, b"early") != []


async def _stored(node: Node, queue: Queue) -> bool:
    try:
        return await node.push(A, queue, b"x") in (STORED, AGAIN)
    except StoreFull:
        return False


async def test_lost_ack_level_is_not_remembered(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    queue.unkept = True
    with pytest.raises(AckLevelLost):
        await node.push(A, queue, b"x")
    assert await kept(desk, A) is None


async def test_request_id_expires(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    assert await node.push(A, queue, b"a", keep_ms=1) is STORED

    async def stored() -> bool:
        return await node.push(A, queue, b"a") is STORED

    await until(stored)
    assert KEEP_MS - 30_000 < await desk.domain.link.call("PTTL", desk.domain.keys.request(A)) <= KEEP_MS


@pytest.mark.parametrize("request_", [b"", b"x" * 15, b"x" * 17, NO_ID])
async def test_invalid_request_id_is_refused(desk: Desk, node: Node, request_: bytes) -> None:
    """Check that invalid ids, such as all zeros, are refused (ring.md 5.3)."""
    queue = await desk.queue()
    for answer in (node.push(request_, queue, b""), node.pull(request_, queue), node.settle(request_, queue)):
        with pytest.raises(ValueError, match="16 octets"):
            await answer


async def test_request_id_is_for_one_kind_of_request(desk: Desk, node: Node) -> None:
    queue = await desk.queue()
    await node.push(A, queue, b"x")
    with pytest.raises(BatchDiffers):
        await node.pull(A, queue)
    assert await node.settle(A, queue) is Settlement.UNKNOWN
    assert given(await node.pull(B, queue)) == (b"x", False)
    with pytest.raises(BatchDiffers):
        await node.push(B, queue, b"y")
    assert await node.settle(B, queue) is Settlement.SETTLED
