"""Queue operations from the ring, carried out by the first node that serves the queue (ring.md 5.3, 5.4)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from protos.ring import (
    HEAD_BYTES,
    MAX_RING_MESSAGE,
    NO_ID,
    REPLIES,
    Frame,
    Operation,
    encode_frame,
    parse_frame,
)
from services.ring.node.counts import UserOutcome
from services.ring.remote_queues import NotDone, RemoteMessage
from services.ring.service import OWNER
from services.store.model.internal import is_internal
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Member, Ring, Start
from tests.servers import Server


async def stores(start: Start, new_server: NewServer, number: int, **how: Any) -> list[Member]:
    """Start nodes with a store each."""
    return [await start(await new_server(), b"node:%d" % n, **how) for n in range(number)]


class Successor:
    """The rest of the ring: it receives the node's messages and sends it others."""

    def __init__(self, node: Member) -> None:
        self.node = node
        self.got: list[Frame] = []
        node.users.user_source.on_ready(self._take)
        self._take()

    def _take(self) -> None:
        for outgoing_message in self.node.users.user_source.take(64):
            frame = parse_frame(outgoing_message.payload)
            assert frame is not None
            self.got.append(frame)
            asyncio.get_running_loop().call_soon(outgoing_message.acknowledged)

    async def sends(self, frame: Frame) -> None:
        """Send a message; return once it is safe."""
        safe = asyncio.Event()
        self.node.users.user_sink.received(encode_frame(frame), safe.set)
        async with asyncio.timeout(20):
            await safe.wait()

    async def asks(self, operation: Operation, queue: bytes, request: int, body: bytes = b"") -> Frame:
        """Send a request; return the frame that the node sends on."""
        before = len(self.got)
        await self.sends(Frame(operation, b"client", queue, body, request.to_bytes(16)))
        await until(lambda: len(self.got) > before)
        (reply,) = self.got[before:]
        return reply

    async def settles(self, queue: bytes, request: int) -> None:
        await self.sends(Frame(Operation.OK, b"client", queue, b"", request.to_bytes(16), settles=True))


def answer(reply: Frame) -> tuple[str, bytes]:
    assert reply.operation in REPLIES
    return reply.operation.name, reply.message


OK = ("OK", b"")


@pytest.fixture
async def node(start: Start, server: Server) -> Member:
    return await start(server, b"node")


@pytest.fixture
async def ring(node: Member) -> Successor:
    return Successor(node)


# around the ring


async def test_first_node_with_the_queue_serves_it(start: Start, new_server: NewServer) -> None:
    nodes = await stores(start, new_server, 4)
    for place in (2, 3):
        await nodes[place].declare("orders")
    settled = Ring(nodes)
    assert await nodes[0].push(b"orders", b"one") is None
    assert await nodes[3].push(b"orders", b"two") is None
    assert await nodes[2].bodies("orders") == [b"one", b"two"]
    assert await nodes[3].bodies("orders") == []
    await settled.settle_down()


async def test_unserved_request_comes_back(start: Start, new_server: NewServer) -> None:
    nodes = await stores(start, new_server, 3)
    ring = Ring(nodes)
    refused = NotDone("no node serves this queue")
    assert await nodes[1].push(b"missing", b"x") == refused
    assert await nodes[1].pull(b"missing") == refused
    assert await nodes[1].destroy(b"missing") == refused
    assert nodes[1].count(UserOutcome.CAME_BACK) == 3
    await ring.settle_down()


async def test_pulled_message_is_settled_by_the_client(start: Start, new_server: NewServer) -> None:
    nodes = await stores(start, new_server, 3)
    await nodes[2].declare("orders")
    await nodes[2].put("orders", b"a", b"", b"c")
    ring = Ring(nodes)
    for wanted in (b"a", b"", b"c"):
        brought = await nodes[0].pull(b"orders")
        assert isinstance(brought, RemoteMessage)
        assert brought.body == wanted
        brought.settle()
        brought.settle()  # twice counts once
    assert await nodes[0].pull(b"orders") == NotDone("empty")
    await until(lambda: nodes[2].count(UserOutcome.SETTLED) == 3)
    await ring.settle_down()
    stats = await nodes[2].stats("orders")
    assert (stats["ready"], stats["in_flight"], stats["acked"]) == (0, 0, 3)
    assert len(nodes[2].users.leases) == 0


async def test_unsettled_message_returns_after_the_visibility_timeout(
    start: Start, new_server: NewServer
) -> None:
    """Check that an unsettled message returns after the visibility timeout as a failed delivery (5.4).

    So no message is redelivered forever.
    """
    nodes = await stores(start, new_server, 2)
    await nodes[1].declare("orders", visibilityTimeout="1s", maxDeliveries=2)
    await nodes[1].put("orders", b"a")
    Ring(nodes)
    for _ in range(2):
        brought = await nodes[0].pull(b"orders")
        assert isinstance(brought, RemoteMessage)
        assert await nodes[0].pull(b"orders") == NotDone("empty")
        await until(lambda: len(nodes[1].users.leases) == 0)
    (letter,) = await until(partial(nodes[1].dead, "orders"))
    assert (letter.body, letter.reason) == (b"a", "max_deliveries")


async def test_pushes_of_one_client_keep_their_order(start: Start, new_server: NewServer) -> None:
    nodes = await stores(start, new_server, 3)
    await nodes[2].declare("orders")
    Ring(nodes, window=5)
    bodies = [b"%d" % n for n in range(200)]
    answers = await asyncio.gather(*(nodes[0].push(b"orders", body) for body in bodies))
    assert set(answers) == {None}
    assert await nodes[2].bodies("orders") == bodies


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"maxLength": 1}, "queue is full: pull from it, or push later"),
        ({"paused": True}, "queue is paused: try again later"),
    ],
)
async def test_refusing_queue_answers_error(
    start: Start, new_server: NewServer, spec: dict[str, Any], reason: str
) -> None:
    """Check that a refusing queue answers ERROR with the text of the client port (5.8)."""
    nodes = await stores(start, new_server, 2)
    await nodes[1].declare("orders")
    await nodes[1].put("orders", b"in the way")
    await nodes[1].declare("orders", **spec)
    Ring(nodes)
    assert await nodes[0].push(b"orders", b"x") == NotDone(reason)
    assert (await nodes[1].stats("orders"))["ready"] == 1


async def test_destroy_removes_only_what_create_queue_made(start: Start, new_server: NewServer) -> None:
    nodes = await stores(start, new_server, 2)
    await nodes[1].declare("made", OWNER)
    await nodes[1].declare("declared")
    Ring(nodes)
    assert await nodes[0].destroy(b"made") is None
    assert await nodes[0].destroy(b"made") == NotDone("no node serves this queue")
    refused = await nodes[0].destroy(b"declared")
    assert refused == NotDone("queue was not created by create_queue: only its operator can delete it")
    assert [queue.name async for queue in nodes[1].store.listing.queues() if not is_internal(queue.name)] == [
        "declared"
    ]


async def test_outgoing_queues_are_not_served(start: Start, new_server: NewServer) -> None:
    nodes = await stores(start, new_server, 2)
    Ring(nodes)
    name = nodes[1].users.queue_name.encode()
    assert await nodes[0].push(name, b"x") == NotDone("no node serves this queue")
    assert await nodes[0].destroy(name) == NotDone("no node serves this queue")


# one node


async def test_repeated_push_counts_once(node: Member, ring: Successor) -> None:
    """Check that a repeated push counts once: its reply may have been lost with a link (5.4)."""
    await node.declare("orders")
    for _ in range(3):
        assert answer(await ring.asks(Operation.PUSH, b"orders", 1, b"x")) == OK
    assert await node.bodies("orders") == [b"x"]
    await node.store.catalogue.delete(await node.store.catalogue.find("orders"))
    assert answer(await ring.asks(Operation.PUSH, b"orders", 1, b"x")) == OK, (
        "regardless of the queue's state"
    )


async def test_restarted_node_answers_a_repeated_push(start: Start, node: Member, server: Server) -> None:
    await node.declare("orders")
    assert answer(await Successor(node).asks(Operation.PUSH, b"orders", 1, b"x")) == OK
    await node.close()
    again = Successor(await start(server, b"node"))
    assert answer(await again.asks(Operation.PUSH, b"orders", 1, b"x")) == OK
    assert await again.node.bodies("orders") == [b"x"]


async def test_a_refused_push_is_refused_again(node: Member, ring: Successor) -> None:
    """Check that a refused push is refused again: its ERROR is under way, so it must not be done later."""
    await node.declare("orders", paused=True)
    refused = ("ERROR", b"queue is paused: try again later")
    assert answer(await ring.asks(Operation.PUSH, b"orders", 1, b"x")) == refused
    await node.declare("orders")
    assert answer(await ring.asks(Operation.PUSH, b"orders", 1, b"x")) == refused
    assert answer(await ring.asks(Operation.PUSH, b"orders", 2, b"x")) == OK


async def test_a_repeated_pull_gets_the_same_message(node: Member, ring: Successor) -> None:
    await node.declare("orders")
    await node.put("orders", b"a", b"b")
    for _ in range(2):
        assert answer(await ring.asks(Operation.PULL, b"orders", 1)) == ("OK", b"a")
    await ring.settles(b"orders", 1)
    reply = await ring.asks(Operation.PULL, b"orders", 1)
    assert reply.operation is Operation.ERROR
    assert (await node.stats("orders"))["acked"] == 1
    before = len(ring.got)
    await ring.settles(b"orders", 1)
    assert len(ring.got) == before, "its second pass"


async def test_other_process_of_the_store_settles(start: Start, server: Server) -> None:
    """Check that another process of the store settles what the first process leased (5.4)."""
    one, other = await start(server, b"one"), await start(server, b"other")
    await one.declare("orders")
    await one.put("orders", b"a")
    assert answer(await Successor(one).asks(Operation.PULL, b"orders", 1)) == ("OK", b"a")
    await Successor(other).settles(b"orders", 1)
    assert other.count(UserOutcome.SETTLED) == 1
    assert (await one.stats("orders"))["acked"] == 1


async def test_unknown_settlement_is_forwarded(node: Member, ring: Successor) -> None:
    await node.declare("orders")
    await ring.settles(b"orders", 7)
    await ring.settles(b"elsewhere", 8)
    await until(lambda: len(ring.got) == 2)
    assert all(frame.settles for frame in ring.got)


async def test_message_too_large_for_the_ring_stays_queued(node: Member, ring: Successor) -> None:
    await node.declare("orders")
    await node.put("orders", bytes(MAX_RING_MESSAGE + 1))
    reply = await ring.asks(Operation.PULL, b"orders", 1)
    assert reply.operation is Operation.ERROR
    assert b"too large for the ring" in reply.message
    await ring.sends(Frame(Operation.PULL, b"client", b"orders", b"", NO_ID))
    await until(lambda: len(ring.got) == 2)
    assert b"too large for the ring" in ring.got[1].message
    assert (await node.stats("orders"))["ready"] == 1


async def test_message_too_large_for_the_ring_survives_in_an_at_most_once_queue(
    node: Member, ring: Successor
) -> None:
    """Check that a message too large for the ring survives in an at-most-once queue (5.4).

    Such a queue settles messages before they are read, so the size is checked first.
    """
    await node.declare("orders", delivery="at-most-once")
    await node.put("orders", bytes(MAX_RING_MESSAGE + 1))
    for request in (b"\1" * 16, NO_ID):
        ring.got.clear()
        await ring.sends(Frame(Operation.PULL, b"client", b"orders", b"", request))
        await until(lambda: ring.got)
        assert b"too large for the ring" in ring.got[0].message
    assert (await node.stats("orders"))["ready"] == 1
    await node.declare("others", delivery="at-most-once")
    await node.put("others", b"fits")
    await ring.sends(Frame(Operation.PULL, b"client", b"others", b"", NO_ID))
    await until(lambda: len(ring.got) == 2)
    assert answer(ring.got[1]) == ("OK", b"fits")
    assert (await node.stats("others"))["acked"] == 1


async def test_largest_message_is_pushed_and_pulled(start: Start, new_server: NewServer) -> None:
    nodes = await stores(start, new_server, 2)
    await nodes[1].declare("orders")
    Ring(nodes)
    body = b"x" * MAX_RING_MESSAGE
    assert await nodes[0].push(b"orders", body) is None
    brought = await nodes[0].pull(b"orders")
    assert isinstance(brought, RemoteMessage)
    assert brought.body == body


async def test_push_without_id_is_applied_each_time(node: Member, ring: Successor) -> None:
    """Check that a push without id is applied each time, as the originals send it (5.3)."""
    await node.declare("orders")
    push = Frame(Operation.PUSH, b"original", b"orders", b"x", NO_ID)
    pull = Frame(Operation.PULL, b"original", b"orders", b"", NO_ID)
    for frame in (push, push, pull, pull, pull):
        await ring.sends(frame)
    await until(lambda: len(ring.got) == 5)
    replies = [answer(frame) for frame in ring.got]
    assert replies == [OK, OK, ("OK", b"x"), ("OK", b"x"), ("ERROR", b"empty")]

    async def is_settled() -> bool:
        return bool((await node.stats("orders"))["acked"] == 2)

    await until(is_settled)


async def test_create_queue_from_the_ring_is_refused(node: Member, ring: Successor) -> None:
    """Check that create_queue from the ring is refused (5.3).

    A node creates queues in its own store; the ring only reports whether one exists.
    """
    await node.declare("orders")
    assert answer(await ring.asks(Operation.CREATE_QUEUE, b"orders", 1)) == (
        "ERROR",
        b"queue exists already",
    )
    passed = await ring.asks(Operation.CREATE_QUEUE, b"another", 2)
    assert passed.operation is Operation.CREATE_QUEUE
    assert [q.name async for q in node.store.listing.queues() if not is_internal(q.name)] == ["orders"]


async def test_repeated_destroy_keeps_a_newer_queue(node: Member, ring: Successor) -> None:
    await node.declare("made", OWNER)
    assert answer(await ring.asks(Operation.DESTROY_QUEUE, b"made", 1)) == OK
    await node.declare("made", OWNER)
    assert answer(await ring.asks(Operation.DESTROY_QUEUE, b"made", 1)) == OK
    assert await node.store.catalogue.find("made")
    assert answer(await ring.asks(Operation.DESTROY_QUEUE, b"made", 2)) == OK


async def test_created_and_deleted_queues_are_noticed(node: Member, ring: Successor) -> None:
    assert (await ring.asks(Operation.PUSH, b"orders", 1)).operation is Operation.PUSH
    await node.declare("orders")
    assert answer(await ring.asks(Operation.PUSH, b"orders", 2)) == OK
    await node.store.catalogue.delete(await node.store.catalogue.find("orders"))
    assert (await ring.asks(Operation.PUSH, b"orders", 3)).operation is Operation.PUSH


async def test_max_payload_limits_what_is_begun(start: Start, new_server: NewServer) -> None:
    """Check that max_payload limits our own messages to 8188 octets, as an original's System V queue does (2.1)."""
    nodes = await stores(start, new_server, 2, max_payload=8188)
    fits, large = bytes(8188 - HEAD_BYTES), bytes(8189 - HEAD_BYTES)
    await nodes[1].declare("orders")
    ring = Ring(nodes)
    for link in ring.links:
        link.keeps = True
    refused = NotDone("message is too large for the ring: at most 7670 octets")
    assert await nodes[0].push(b"orders", large) == refused
    await nodes[1].put("orders", large)
    assert await nodes[0].pull(b"orders") == refused
    assert await nodes[0].push(b"orders", fits) is None
    await nodes[0].declare("out", bindings={"ring": {"outbox": 1}})
    await nodes[0].put("out", bytes(8189), bytes(8188))
    await until(lambda: bytes(8188) in ring.links[0].carried)
    assert max(map(len, ring.links[0].carried + ring.links[1].carried)) == 8188
    assert [len(letter.body) for letter in await nodes[0].dead("out")] == [8189]
