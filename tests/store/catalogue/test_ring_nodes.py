"""States of ring nodes, and replies to requests that create or delete queues."""

from __future__ import annotations

import asyncio

import pytest

from services.store import QueueSpec, Source
from services.store.catalogue.ring_nodes import KEEP_MS
from services.store.model.errors import NotInitialised, StoreFault
from services.store.model.identities import NO_ID
from services.store.model.internal import KEEPER
from services.store.model.spec import check_name
from tests.servers import Server
from tests.store.desk import Desk, until
from tests.store.requesting import request_id

A, B = request_id(1), request_id(2)


# node states


async def test_states_of_nodes_are_stored(desk: Desk) -> None:
    board, before = desk.store.ring_nodes, await desk.store.now_ms()
    assert await board.all() == []
    await board.put(7, "10.0.0.1:8085", {"leader": "b", "lost": None, "members": ["a b", "ü"]})
    await board.put(10, "a", {})
    async with desk.another() as other:
        await other.store.ring_nodes.put(7, "10.0.0.1:8085", {"leader": "c"})
        await other.store.ring_nodes.put(7, "with \udcff octets", {"leader": "\udcff"})
        found = await other.store.ring_nodes.all()
    assert [(node.group, node.name, node.document) for node in found] == [
        (7, "10.0.0.1:8085", {"leader": "c"}),
        (7, "with \udcff octets", {"leader": "\udcff"}),
        (10, "a", {}),
    ]
    assert all(before <= node.written_ms <= before + 60_000 for node in found)


async def test_state_of_a_stopped_node_is_removed(desk: Desk) -> None:
    board = desk.store.ring_nodes
    await board.put(7, "a", {})
    await board.put(8, "a", {})
    assert await board.remove(7, "a")
    assert not await board.remove(7, "a")
    assert [node.group for node in await board.all()] == [8]


async def test_states_expire_after_a_day(desk: Desk) -> None:
    """Check that states expire, which bounds their number although pods change their names."""
    board, link, key = desk.store.ring_nodes, desk.store.registry.link, desk.store.registry.keys.ring_nodes
    now = await desk.store.now_ms()
    for name, age in (("old", KEEP_MS + 60_000), ("silent", KEEP_MS - 60_000)):
        await link.call("HSET", key, f"7 {name}", f"{now - age} {{}}")
    await link.call("HSET", key, "7 damaged", "nonsense")
    with pytest.raises(StoreFault, match="7 damaged"):
        await board.all()
    await board.put(7, "new", {})
    assert [node.name for node in await board.all()] == ["new", "silent"]


async def test_states_need_an_initialised_store(server: Server) -> None:
    async with Desk(server) as desk:
        await desk.store.registry.link.call("DEL", desk.store.registry.keys.epoch)
        with pytest.raises(NotInitialised):
            await desk.store.ring_nodes.put(7, "a", {})


# replies


async def test_first_reply_of_a_request_is_kept(desk: Desk) -> None:
    """Check that a repeated request gets the first answer (ring.md 5.4)."""
    registry = desk.store.registry
    assert await registry.reply_of(A) is None
    async with desk.another() as other:
        both = (registry.remember_reply(A, "one", 60_000), registry.remember_reply(B, "two", 60_000))
        assert await asyncio.gather(*both) == ["one", "two"]
        assert await other.store.registry.remember_reply(A, "later ü", 60_000) == "one"
        assert await other.store.registry.reply_of(A) == "one"


async def test_reply_expires(desk: Desk) -> None:
    registry = desk.store.registry
    await registry.remember_reply(A, "one", 1)

    async def forgotten() -> bool:
        return await registry.reply_of(A) is None

    await until(forgotten)
    assert await registry.remember_reply(A, "two", 60_000) == "two"
    assert 0 < await registry.link.call("PTTL", registry.keys.request(A)) <= 60_000


@pytest.mark.parametrize("request_", [b"", b"short", NO_ID])
async def test_invalid_request_id_is_refused(desk: Desk, request_: bytes) -> None:
    with pytest.raises(ValueError, match="16 octets"):
        await desk.store.registry.remember_reply(request_, "x", 60_000)


# the edge's own queues


@pytest.mark.parametrize("node", ["10.0.0.1:8085", "[::1]:8085", "host", "x" * 237])
async def test_node_has_a_queue_with_its_name(desk: Desk, node: str) -> None:
    """Check that a node's outgoing queue may have its name, of up to 237 octets in requests (ring.md 2.2, 4.5, 5.3)."""
    name = check_name(f"ring/65535/{node}")
    queue, _ = await desk.store.catalogue.declare(name, QueueSpec(), "edge:ring", internal=True)
    desk.source = Source(KEEPER)
    await desk.put(queue, b"x")
    found = await desk.another().store.catalogue.find(name)
    assert (found.qid, found.owner) == (queue.qid, "edge:ring")
    assert await desk.drain(found) == [b"x"]
