"""Messages put by one protocol and taken by another: ring, TMQ, text and the command line (docs/conversions.md)."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from protos import tmq
from services.store.model import records
from services.store.pipeline.async_client import AsyncClient
from tests.cli.shell import ended
from tests.live import until
from tests.pubsub.client import Client as TextClient
from tests.pubsub.live import LiveEdge as TextEdge
from tests.ring.clients.client import Client
from tests.ring.clients.live import LiveClients
from tests.servers import Server
from tests.tmq.live import LiveEdge as TmqEdge

Command = Callable[..., bytes]
BODIES = [b"", b"x", bytes(range(256)), b"\0" * 70_000, "ü".encode()]


@pytest.fixture
async def tmq_edge(server: Server, edge: LiveClients) -> AsyncIterator[TmqEdge]:
    """Start a TMQ edge on the same store."""
    other = await TmqEdge(server.url).start()
    yield other
    await other.close()
    other.check_no_fault_of_ours()


@pytest.fixture
async def text(server: Server, edge: LiveClients) -> AsyncIterator[TextEdge]:
    """Start a text edge on the same store."""
    other = TextEdge(server.url)
    await other.open()
    yield other
    await other.close()
    other.check_no_fault_of_ours()


@pytest.fixture
def penstock(server: Server, tmp_path: Path) -> Command:
    """Run a command on the same store; return what it writes to standard output."""

    def run(*arguments: str) -> bytes:
        done = ended(arguments, tmp_path, {**os.environ, "REDIS_URL": server.url}, b"")
        assert done.code == 0, done.err
        return done.out

    return run


async def test_push_is_dequeued_by_tmq(client: Client, tmq_edge: TmqEdge) -> None:
    await client.create(b"q")
    await client.push(b"q", *BODIES)
    reader = await tmq_edge.client()
    assert await reader.drain(await reader.queue(b"q")) == BODIES


async def test_tmq_enqueue_is_pulled(client: Client, tmq_edge: TmqEdge) -> None:
    writer = await tmq_edge.client()
    await writer.put(await writer.queue(b"q"), *BODIES)
    assert await client.drain(b"q") == BODIES


async def test_transaction_is_visible_after_its_commit(client: Client, tmq_edge: TmqEdge) -> None:
    writer = await tmq_edge.client()
    mqid = await writer.queue(b"q")
    assert await writer.ts()
    assert await writer.enq(mqid, b"1")
    assert await client.pull(b"q") is None
    assert await writer.te()
    assert await client.pull(b"q") == b"1"


async def test_each_protocol_removes_only_its_own_queues(client: Client, tmq_edge: TmqEdge) -> None:
    """Check that each protocol removes only its own queues (ring.md 5.8, tmq.md 3)."""
    other = await tmq_edge.client()
    await client.create(b"ours")
    await other.create(b"theirs")
    assert not await other.delete(b"ours")
    await client.send(
        b"".join([(3).to_bytes(4, "big"), *(n.ljust(255, b"\0") for n in (b"me", b"theirs")), bytes(4)])
    )
    assert (await client.read(518))[:4] == bytes([0, 0, 0, 4])
    assert await other.open(b"ours") == tmq.mqid_of(b"ours")


async def test_message_of_a_broken_client_goes_to_the_other_protocol(
    edge: LiveClients, client: Client, tmq_edge: TmqEdge
) -> None:
    """Check that a broken client's message returns to its place for the next consumer (ring.md 5.2, tmq.md 6.1)."""
    other = await tmq_edge.client()
    mqid = await other.queue(b"q")
    await client.push(b"q", b"1", b"2", b"3")
    assert await client.pull(b"q") == b"1"
    assert await other.dnq(mqid) == b"2"
    client.reset()
    await until(lambda: all_but_one_ready(edge))
    assert await other.drain(mqid) == [b"1", b"3"]


async def all_but_one_ready(edge: LiveClients) -> bool:
    stats = await edge.stats("q")
    return bool((stats["ready"], stats["in_flight"]) == (2, 1))


async def test_the_command_line(edge: LiveClients, client: Client, penstock: Command) -> None:
    """Check that the command line exchanges bodies octet for octet; frames carry no attributes."""
    await client.create(b"q")
    penstock("put", "q", "from the command line", "--attr", "colour=red")
    assert await client.pull(b"q") == b"from the command line"
    await client.push(b"q", b"\0\xff")
    assert penstock("get", "q") == b"\0\xff"
    await client.push(b"q", b"x")
    (shown,) = [json.loads(line) for line in (penstock("peek", "q", "--json")).splitlines()]
    assert shown["origin"] == "ring 127.0.0.1"
    assert not shown.get("attributes")


async def test_a_send_is_pulled_without_its_tag(edge: LiveClients, client: Client, text: TextEdge) -> None:
    await edge.declare("orders", bindings={"text": {"subscribe": ["order.*"]}})
    publisher = await TextClient.connect(text.places["text"])
    text.adopt(publisher.writer.close)
    await until(lambda: sent_until_there(edge, publisher))
    assert await client.pull(b"orders") == b"three barrels"


async def sent_until_there(edge: LiveClients, publisher: TextClient) -> bool:
    """Send until a copy is in the queue: then the text edge knows the binding."""
    await publisher.publish(b"order.new", b"three barrels")
    return bool((await edge.stats("orders"))["ready"])


async def test_a_push_is_heard_by_subscribers(edge: LiveClients, client: Client, text: TextEdge) -> None:
    await edge.declare("readings", bindings={"text": {"publish": "plant.readings"}})
    subscriber = await TextClient.connect(text.places["text"])
    text.adopt(subscriber.writer.close)
    await subscriber.subscribe(b"1", b"plant.readings")
    await client.push(b"readings", b"21.5", b"two\nlines")
    assert await subscriber.line() == b"MESSAGE 1 21.5\n"
    assert await subscriber.line() == b"MESSAGE 1 two\\nlines\n"


async def test_queue_name_may_be_invalid_utf8(edge: LiveClients, client: Client, tmq_edge: TmqEdge) -> None:
    name = b"\xff\xfe-q"
    await client.create(name)
    await client.push(name, b"1")
    other = await tmq_edge.client()
    assert await other.dnq(await other.queue(name)) == b"1"
    queue = await edge.tools.catalogue.find(name.decode("utf-8", "surrogateescape"))
    domain = edge.tools.open_domain()
    await domain.pipe.ready()
    assert await AsyncClient(domain.pipe).publish(queue, [records.encode(b"2", {"a": 1})], "test") == []
    assert await client.drain(name) == [b"2"]
