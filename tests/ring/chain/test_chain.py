"""Messages that enter at one system, go around the ring and leave at another by another protocol.

(ring.md 5.3, 5.4; docs/conversions.md)

Each system has its own store behind a node; between them is a node that has neither queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from services.ring.edge import RunningRing
from tests.live import until
from tests.pubsub.client import Client as TextClient
from tests.pubsub.live import LiveEdge as TextEdge
from tests.ring.chain.live import LiveRing, is_ring
from tests.ring.clients.client import Refused, pull
from tests.ring.links.conftest import NewServer
from tests.servers import Server
from tests.tmq.live import LiveEdge as TmqEdge

BODIES = [b"x", b"", bytes(range(256)), b"\0" * 15_865, "ü".encode()]


class Systems:
    """`here`: where clients ask the ring. `there`: the store that has the queue and is served by other edges."""

    def __init__(self, nodes: list[LiveRing], there: Server) -> None:
        self.here, _, self.there = nodes
        self.url = there.url


@pytest.fixture
async def systems(new_server: NewServer, port: int) -> AsyncIterator[Systems]:
    servers = [await new_server() for _ in range(3)]
    nodes = [LiveRing(server.url, port) for server in servers]
    async with AsyncExitStack() as stack:
        for node in nodes:
            await node.open()
            stack.push_async_callback(node.close)
        await until(lambda: is_ring(nodes))
        yield Systems(nodes, servers[-1])
    for node in nodes:
        node.check_no_fault_of_ours()


@pytest.fixture
async def tmq(systems: Systems) -> AsyncIterator[TmqEdge]:
    """Start a TMQ edge on the store that has the queue."""
    edge = await TmqEdge(systems.url).start()
    yield edge
    await edge.close()
    edge.check_no_fault_of_ours()


@pytest.fixture
async def text(systems: Systems) -> AsyncIterator[TextEdge]:
    """Start a text edge on the store that has the queue."""
    edge = TextEdge(systems.url)
    await edge.open()
    yield edge
    await edge.close()
    edge.check_no_fault_of_ours()


async def test_push_on_client_port_is_dequeued_by_tmq(systems: Systems, tmq: TmqEdge) -> None:
    reader = await tmq.client()
    mqid = await reader.queue(b"orders")
    writer = await systems.here.client()
    await writer.push(b"orders", *BODIES)
    assert await reader.drain(mqid) == BODIES


async def test_tmq_enqueue_is_pulled_on_client_port(systems: Systems, tmq: TmqEdge) -> None:
    """Check that each message is settled around the ring: none is left and none is redelivered."""
    writer = await tmq.client()
    mqid = await writer.queue(b"orders")
    await writer.put(mqid, *BODIES)
    reader = await systems.here.client()
    assert await reader.drain(b"orders") == BODIES

    async def all_settled() -> bool:
        stats = await systems.there.stats("orders")
        return bool((stats["acked"], stats["ready"], stats["in_flight"]) == (len(BODIES), 0, 0))

    await until(all_settled)
    assert await writer.dnq(mqid) is None


async def test_tmq_transaction_is_visible_after_its_commit(systems: Systems, tmq: TmqEdge) -> None:
    """Check that messages of a TMQ transaction become visible when it is committed (tmq.md 5)."""
    writer, reader = await tmq.client(), await systems.here.client()
    mqid = await writer.queue(b"orders")
    assert await writer.ts()
    assert await writer.enq(mqid, b"three barrels")
    assert await reader.pull(b"orders") is None
    assert await writer.te()
    assert await reader.pull(b"orders") == b"three barrels"


async def test_push_reaches_pubsub_subscribers(systems: Systems, text: TextEdge) -> None:
    await systems.there.declare("readings", bindings={"text": {"publish": "plant.readings"}})
    subscriber = await TextClient.connect(text.places["text"])
    text.adopt(subscriber.writer.close)
    await subscriber.subscribe(b"1", b"plant.readings")
    writer = await systems.here.client()
    await writer.push(b"readings", b"21.5", b"two\nlines")
    assert await subscriber.line() == b"MESSAGE 1 21.5\n"
    assert await subscriber.line() == b"MESSAGE 1 two\\nlines\n"


async def test_message_goes_around_and_returns(systems: Systems, tmq: TmqEdge) -> None:
    """Check that a request by the ring is answered by TMQ, though neither program knows the other's protocol."""
    server, client = await tmq.client(), await systems.here.client()
    questions, answers = await server.queue(b"questions"), await server.queue(b"answers")

    async def answer() -> None:
        question = await until(lambda: server.dnq(questions))
        assert await server.enq(answers, question.upper())

    answering = asyncio.create_task(answer())
    await client.push(b"questions", b"how many barrels?")
    await answering
    assert await client.pull(b"answers") == b"HOW MANY BARRELS?"


async def test_ring_requests_have_their_own_labels(systems: Systems) -> None:
    """Check that waiting times of ring requests have their own label.

    They depend on other nodes, so PenstockSlowRequests leaves them out (docs/ring.md, What the edge counts).
    """
    here = systems.here
    await systems.there.declare("orders")
    client = await here.client()
    await client.create(b"own")
    await client.push(b"own", b"1")
    await client.push(b"orders", b"2", b"3")
    assert await client.drain(b"own") == [b"1"]
    assert await client.drain(b"orders") == [b"2", b"3"]
    with pytest.raises(Refused):  # a queue that was not created by create_queue
        await client.destroy(b"orders")
    counted = {
        (operation, result): int(await here.requests(operation, result))
        for operation in ("push", "pull", "destroy_queue", "ring_push", "ring_pull", "ring_destroy_queue")
        for result in ("ok", "failed")
    }
    assert {what: number for what, number in counted.items() if number} == {
        ("push", "ok"): 1,
        ("pull", "ok"): 1,
        ("pull", "failed"): 1,
        ("ring_push", "ok"): 2,
        ("ring_pull", "ok"): 2,
        ("ring_pull", "failed"): 1,
        ("ring_destroy_queue", "failed"): 1,
    }


async def test_waiting_ring_requests_fail_when_the_node_stops(new_server: NewServer, port: int) -> None:
    """Check that waiting ring requests fail when the node stops: without links no reply can arrive (5.8)."""
    nodes = [LiveRing((await new_server()).url, port, self_s=60.0) for _ in range(2)]
    async with AsyncExitStack() as stack:
        here, there = nodes
        await here.open()
        stack.push_async_callback(here.close)
        await there.open()
        await until(lambda: is_ring(nodes))
        await there.close()
        client = await here.client()
        await client.send(pull(b"missing"))
        await until(lambda: len(here.remote_requests))
        assert isinstance(here.running, RunningRing)
        await here.running.stop_taking()
        assert (await client.reply(b"missing")).message.startswith(b"unknown: this node is stopping")
        await client.send(pull(b"missing"))
        assert (await client.reply(b"missing")).message == b"this node is stopping"
