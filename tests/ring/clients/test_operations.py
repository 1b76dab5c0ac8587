"""Effects and replies of each operation (ring.md 5.1, 5.2, 5.8)."""

from __future__ import annotations

import pytest

from services.ring.service import OWNER
from services.store import QueueSpec
from services.store.model import records
from services.store.model.spec import Delivery
from services.store.pipeline.async_client import AsyncClient
from tests.live import until
from tests.ring.clients.client import (
    ERROR,
    ME,
    OK,
    Client,
    Refused,
    Reply,
    create,
    destroy,
    pull,
    push,
)
from tests.ring.clients.conftest import MakeEdge
from tests.ring.clients.live import LiveClients

UNSERVED = "no node serves this queue"


# --- create, push, pull, destroy


async def test_a_queue_from_its_creation_to_its_end(client: Client) -> None:
    """Check a queue from its creation to its deletion (5.1)."""
    await client.create(b"q")
    await client.push(b"q", b"1", b"")
    assert await client.pull(b"q") == b"1"
    assert await client.pull(b"q") == b""
    assert await client.pull(b"q") is None
    await client.destroy(b"q")
    with pytest.raises(Refused, match=UNSERVED):
        await client.pull(b"q")


async def test_reply_repeats_both_fields_unchanged(client: Client) -> None:
    """Check that replies repeat both fields, also octets behind a name's first NUL (5.2)."""
    sender, queue = b"\xff\xfe" + b"x" * 252 + b"\0", b"\x80q\0" + b"junk".ljust(252, b"?")
    for operation, reply in ((0, 5), (1, 5), (2, 5), (3, 5), (2, 4)):
        size = 3 if operation == 1 else 0
        head = operation.to_bytes(4, "big") + sender + queue + size.to_bytes(4, "big")
        await client.send(head, b"abc"[:size])
        answer = await client.read(518)
        assert answer[:-4] == reply.to_bytes(4, "big") + sender + queue
        await client.read(int.from_bytes(answer[-4:], "big"))


async def test_sender_name_may_be_empty(client: Client) -> None:
    """Check that sender_name may be empty: it may be anything (5.2)."""
    await client.create(b"q")
    await client.send(
        (1).to_bytes(4, "big") + bytes(255) + b"q".ljust(255, b"\0") + (1).to_bytes(4, "big") + b"x"
    )
    assert (await client.read(518))[:4] == bytes([0, 0, 0, 5])
    assert await client.pull(b"q") == b"x"


@pytest.mark.parametrize("operation", [0, 2, 3], ids=["create", "pull", "destroy"])
async def test_a_message_that_comes_with_another_request_is_ignored(
    edge: LiveClients, client: Client, operation: int
) -> None:
    """Check that a message sent with an operation that takes none is ignored (5.2)."""
    await client.create(b"q")
    await client.push(b"q", b"1")
    name = b"new" if operation == 0 else b"q"
    request = {0: create, 2: pull, 3: destroy}[operation](name)
    body = bytes(900_000)
    await client.send(request[:-4] + len(body).to_bytes(4, "big"), body, push(b"beside", b""))
    assert await client.ok(name) == (b"1" if operation == 2 else b"")
    assert (await client.reply(b"beside")).operation is ERROR
    assert edge.budget.total == 0


async def test_pull_from_empty_queue_is_error_empty(client: Client) -> None:
    """Check that a pull from an empty queue is answered with ERROR `empty` (5.2)."""
    await client.create(b"q")
    await client.send(pull(b"q"))
    assert await client.reply(b"q") == Reply(ERROR, b"empty")


@pytest.mark.parametrize("size", [0, 1, 4095, 65_537, 1 << 20])
async def test_message_is_returned_unchanged(client: Client, size: int) -> None:
    """Check that a message is returned unchanged, up to max_message_bytes (5.2)."""
    await client.create(b"q")
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    await client.push(b"q", body)
    assert await client.pull(b"q") == body


async def test_queue_names_of_any_octets_are_accepted(client: Client, edge: LiveClients) -> None:
    """Check that queue names of 1 to 254 octets without NUL are accepted (5.1)."""
    for name in (b"a", bytes(range(1, 255)), b"\xff" * 254, "Kühe".encode()):
        await client.create(name)
        await client.push(name, name)
        assert await client.pull(name) == name
        stats = await edge.stats(name.decode("utf-8", "surrogateescape"))
        assert stats["delivered"] == 1


# --- whole queues


async def test_create_queue_of_an_existing_name_is_refused(edge: LiveClients, client: Client) -> None:
    """Check that create_queue refuses an existing name, however the queue was made, and changes nothing (5.8)."""
    await edge.declare("theirs", owner="cli", max_length=7)
    await client.create(b"mine")
    for name in (b"theirs", b"mine"):
        with pytest.raises(Refused, match="queue exists already"):
            await client.create(name)
    assert (await edge.tools.catalogue.find("theirs")).spec.max_length == 7
    assert edge.refusals() == {"queue_exists": 2}


async def test_settings_define_queues_made_by_create_queue(make_edge: MakeEdge) -> None:
    """Check that settings define the properties of queues made by create_queue (5.8)."""
    edge = await make_edge(clients={"create": {"domain": "shop", "max_length": 2, "ack_level": "memory"}})
    client = await edge.client()
    await client.create(b"q")
    queue = await edge.tools.catalogue.find("q")
    assert (queue.owner, queue.domain) == (OWNER, "shop")
    assert (queue.spec.max_length, queue.spec.ack_level) == (2, "memory")
    await client.push(b"q", b"1")
    assert await client.pull(b"q") == b"1"


async def test_create_queue_can_be_forbidden(make_edge: MakeEdge) -> None:
    """Check that create_queue can be disabled (5.8)."""
    edge = await make_edge(clients={"create": {"allowed": False}})
    client = await edge.client()
    with pytest.raises(Refused, match="queues cannot be created here"):
        await client.create(b"q")
    with pytest.raises(Refused, match=UNSERVED):
        await client.push(b"q", b"1")
    assert edge.refusals() == {"create_forbidden": 1, "queue_unknown": 1}


async def test_create_queue_fails_if_the_ack_level_cannot_be_met(make_edge: MakeEdge) -> None:
    """Check that create_queue fails if the acknowledgement level cannot be met (5.8)."""
    edge = await make_edge(clients={"create": {"ack_level": "replicated:3"}})
    client = await edge.client()
    with pytest.raises(Refused, match=r"promises: a replica may be away, try again .* lower the ack level"):
        await client.create(b"q")
    assert edge.refusals() == {"ack_level_refused": 1}


async def test_destroy_queue_removes_only_queues_made_by_create_queue(
    edge: LiveClients, client: Client
) -> None:
    """Check that destroy_queue removes only queues made by create_queue (5.8)."""
    await edge.declare("theirs", owner="cli")
    with pytest.raises(Refused, match="not created by create_queue"):
        await client.destroy(b"theirs")
    await client.push(b"theirs", b"x")
    with pytest.raises(Refused, match=UNSERVED):
        await client.destroy(b"missing")
    await client.create(b"claimed")
    await edge.tools.catalogue.declare("claimed", QueueSpec(), "file", replace=True)
    with pytest.raises(Refused, match="not created by create_queue"):
        await client.destroy(b"claimed")
    assert edge.refusals() == {"not_owner": 2, "queue_unknown": 1}


async def test_a_queue_is_destroyed_with_its_messages(client: Client, other: Client) -> None:
    """Check that destroying a queue deletes its messages, also pulled and unsettled ones (5.8)."""
    await client.create(b"q")
    await client.push(b"q", b"1", b"2")
    assert await other.pull(b"q") == b"1"
    await client.destroy(b"q")
    with pytest.raises(Refused, match=UNSERVED):
        await other.pull(b"q")
    await client.create(b"q")
    assert await other.pull(b"q") is None


@pytest.mark.parametrize("request_of", [create, destroy, pull, lambda name: push(name, b"x")])
async def test_names_of_node_queues_are_refused(
    edge: LiveClients, client: Client, request_of: object
) -> None:
    """Check that names of node queues are refused, whether or not such a node exists (5.8)."""
    assert callable(request_of)
    await edge.declare("ring/outgoing", owner=OWNER)
    for name in (b"ring/outgoing", b"ring/"):
        await client.send(request_of(name))
        assert await client.reply(name) == Reply(ERROR, b"queue names that begin with ring/ are reserved")
    assert edge.refusals() == {"reserved_name": 2}
    assert (await edge.stats("ring/outgoing"))["ready"] == 0


async def test_similar_names_are_not_reserved(client: Client) -> None:
    """Check that names similar to reserved ones are accepted (5.8)."""
    for name in (b"ring", b"rings/a", b"Ring/a", b"a/ring/b"):
        await client.create(name)
        await client.push(name, b"x")


# --- properties of a queue's document


async def test_full_queue_refuses_further_pushes(edge: LiveClients, client: Client) -> None:
    """Check that a full queue refuses further pushes (5.8)."""
    await edge.declare("full", max_length=3)
    await client.send(push(b"full", *(b"%d" % n for n in range(5))))
    full = Reply(ERROR, b"queue is full: pull from it, or push later")
    assert await client.replies(b"full", 5) == [Reply(OK, b"")] * 3 + [full] * 2
    assert edge.refusals() == {"queue_full": 1}
    assert await edge.requests("push", "ok") == 3
    assert await edge.requests("push", "failed") == 2
    assert await client.drain(b"full") == [b"0", b"1", b"2"]
    await client.push(b"full", b"again")


async def test_paused_queue_refuses_push_and_pull(edge: LiveClients, client: Client) -> None:
    """Check that a paused queue refuses push and pull; its pull error differs from that of an empty queue (5.8)."""
    await edge.declare("paused")
    await client.push(b"paused", b"1")
    await edge.tools.catalogue.declare("paused", QueueSpec(paused=True), "test", replace=True)
    await until(lambda: knows_paused(edge) is True)
    for request in (push(b"paused", b"2"), pull(b"paused")):
        await client.send(request)
        assert await client.reply(b"paused") == Reply(ERROR, b"queue is paused: try again later")
    await edge.tools.catalogue.declare("paused", QueueSpec(), "test", replace=True)
    await until(lambda: knows_paused(edge) is False)
    assert await client.messages(b"paused", 2) == [b"1", None]


def knows_paused(edge: LiveClients) -> bool | None:
    """Return the edge's cached copy of the queue's document; None before it was read."""
    queue = edge.service.store.catalogue.held("paused")
    return None if queue is None else queue.spec.paused


async def test_reserved_queue_refuses_pushes(edge: LiveClients, client: Client) -> None:
    """Check that a reserved queue refuses pushes (5.8)."""
    queue = await edge.declare("q")
    domain = edge.tools.open_domain()
    fence = await domain.claims.reserve(queue, "holder", 60_000)
    with pytest.raises(Refused, match="queue is reserved by another sender"):
        await client.push(b"q", b"1")
    await domain.claims.release_reservation(queue, "holder", fence)
    await client.push(b"q", b"2")
    assert await client.drain(b"q") == [b"2"]


async def test_message_too_large_for_the_remote_system_is_refused(edge: LiveClients, client: Client) -> None:
    """Check that a message too large for the remote system is refused (5.8)."""
    remote = {"protocol": "rqp-mca", "queueId": 7, "peers": ["away"], "maxMessageBytes": 10}
    await edge.declare("away", remote=remote)
    await client.push(b"away", bytes(10))
    with pytest.raises(Refused, match="too large for the system that this queue leads to"):
        await client.push(b"away", bytes(11))


async def test_at_most_once_is_settled_before_it_is_sent(edge: LiveClients, client: Client) -> None:
    """Check that at-most-once messages are settled before they are sent (5.2, tmq.md 6.1)."""
    await edge.declare("once", delivery=Delivery.AT_MOST_ONCE)
    await client.push(b"once", b"1", b"2")
    assert await client.pull(b"once") == b"1"
    assert (await edge.stats("once"))["acked"] == 1
    client.reset()
    await until(lambda: not edge.connections())
    assert (await edge.stats("once"))["ready"] == 1


async def test_attributes_are_dropped_on_pull(edge: LiveClients, client: Client) -> None:
    """Check that a pull returns only the body and drops attributes (5.2)."""
    queue = await edge.declare("mixed")
    bodies = [b"plain", b"with", b"", b"more"]
    made = [records.encode(body, {"priority": n} if n % 2 else None) for n, body in enumerate(bodies)]
    domain = edge.tools.open_domain()
    await domain.pipe.ready()
    assert await AsyncClient(domain.pipe).publish(queue, made, "test") == []
    assert await client.messages(b"mixed", 5) == [*bodies, None]


async def test_origin_of_a_message_is_kept(edge: LiveClients, client: Client) -> None:
    """Check that a message's origin is the peer's address, not the name that the client sends (5.2)."""
    await client.create(b"q")
    await client.push(b"q", b"x")
    queue = await edge.tools.catalogue.find("q")
    domain = edge.tools.open_domain()
    await domain.pipe.ready()
    (delivery,) = await AsyncClient(domain.pipe).take(queue, 1)
    assert delivery.origin == "ring 127.0.0.1"
    domain.pipe.messages.give_back([delivery])
    assert ME not in delivery.stamp


async def test_there_may_be_more_than_one_client_port(make_edge: MakeEdge) -> None:
    """Check that several client ports work, such as one with TLS: each listener but `ring` is one (1.1)."""
    edge = await make_edge(listeners={"more": {"port": 0}})
    await (await edge.client()).create(b"orders")
    other = await edge.client(listener="more")
    await other.push(b"orders", b"hello")
    assert await other.pull(b"orders") == b"hello"
