"""Queues that subscribe to tags, and queues that publish under a tag (pubsub.md 5)."""

from __future__ import annotations

from typing import Any

from services.store import Queue
from services.store.model import records
from services.store.pipeline.async_client import AsyncClient
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.servers import Server


def subscribing(*patterns: str, **spec: Any) -> dict[str, Any]:
    return {"bindings": {"text": {"subscribe": patterns}}, **spec}


async def bodies(edge: LiveEdge, queue: Queue) -> list[tuple[bytes, str]]:
    """Return the ready messages of the queue: bodies and tags."""
    deliveries = await edge.tools.get_domain(queue.domain).peek(queue, 1000)
    contents = [records.decode(record) for delivery in deliveries for record in delivery.records()]
    return [(content.body, content.attributes["tag"]) for content in contents]


async def test_queue_gets_a_copy_of_matching_sends(edge: LiveEdge) -> None:
    """Check that a queue gets one copy of each matching send, in the order of the log (5.1).

    It is declared while the edge runs, and several of its patterns match.
    """
    client, subscriber = await edge.client(), await edge.client()
    await subscriber.subscribe(b"1", b"o*")
    await client.publish(b"order.new", b"before")
    queue = await edge.declare("orders", **subscribing("order.*", "order.new", "x"))
    await client.send(b"SEND order.new a\nSEND other b\nSEND x \nSEND order.old c d\n")
    assert await client.lines(4) == [b"OK\n"] * 4
    assert await bodies(edge, queue) == [(b"a", "order.new"), (b"", "x"), (b"c d", "order.old")]
    texts = [line.split(b" ", 2)[2] for line in await subscriber.lines(4)]
    assert texts == [b"before\n", b"a\n", b"b\n", b"c d\n"]
    await edge.tools.catalogue.delete(queue)
    await client.publish(b"order.new", b"after")


async def test_full_queue_refuses_the_whole_send(edge: LiveEdge) -> None:
    """Check that a full queue refuses the whole send: ERROR, no message, no copy (5.1).

    Others of the run are stored.
    """
    full = await edge.declare("full", **subscribing("a*", maxLength=1))
    roomy = await edge.declare("roomy", **subscribing("a1", "b"))
    client, subscriber = await edge.client(), await edge.client()
    await subscriber.subscribe(b"1", b"a*")
    await subscriber.subscribe(b"2", b"b")
    await client.send(b"SEND b 0\nSEND a1 1\nSEND a1 2\nSEND b 3\nSEND a2 4\nSEND b 5\n")
    error = b"ERROR a queue that takes this tag is full\n"
    assert await client.lines(6) == [b"OK\n", b"OK\n", error, b"OK\n", error, b"OK\n"]
    assert await bodies(edge, full) == [(b"1", "a1")]
    assert [body for body, _ in await bodies(edge, roomy)] == [b"0", b"1", b"3", b"5"]
    lines = await subscriber.lines(4)
    assert lines == [b"MESSAGE 2 0\n", b"MESSAGE 1 1\n", b"MESSAGE 2 3\n", b"MESSAGE 2 5\n"]
    await subscriber.nothing_more()
    assert edge.refusals()["queue_full"] == 2


async def test_queue_publishes_every_message_under_its_tag(edge: LiveEdge) -> None:
    """Check that a queue publishes every message under its tag, from any source (5.2, 5.3).

    Bodies that are no valid message are escaped.
    """
    queue = await edge.declare("events", bindings={"text": {"publish": "ev.all"}})
    plain, wide = await edge.client(), await edge.client("utf8")
    await plain.subscribe(b"1", b"ev*")
    await wide.subscribe(b"2", b"ev.all")
    pipe = edge.tools.open_domain(queue.domain).pipe
    await pipe.ready()
    put = [b"one", b"two\nlines\\", "grün".encode(), b"\xff", b""]
    assert await AsyncClient(pipe).publish(queue, [records.encode(body) for body in put], "test") == []
    texts = [rb"one", rb"two\nlines\\", rb"gr\xc3\xbcn", rb"\xff", b""]
    assert await plain.lines(5) == [b"MESSAGE 1 %b\n" % text for text in texts]
    texts[2] = "grün".encode()
    assert await wide.lines(5) == [b"MESSAGE 2 %b\n" % text for text in texts]


async def test_message_crosses_at_most_one_bridge(edge: LiveEdge) -> None:
    """Check that a message crosses at most one bridge (5.2).

    From a queue to the log and not into another queue; from a SEND into a queue and not back.
    """
    source = await edge.declare("source", bindings={"text": {"publish": "t1"}})
    both = await edge.declare("both", bindings={"text": {"subscribe": ["t*"], "publish": "t2"}})
    client, sender = await edge.client(), await edge.client()
    await client.subscribe(b"1", b"t*")
    pipe = edge.tools.open_domain(source.domain).pipe
    await pipe.ready()
    ask = AsyncClient(pipe)
    await ask.publish(source, [records.encode(b"from a queue")], "test")
    assert await client.line() == b"MESSAGE 1 from a queue\n"
    await sender.publish(b"t3", b"from a client")
    assert await client.line() == b"MESSAGE 1 from a client\n"
    await ask.publish(both, [records.encode(b"put in")], "test")
    assert await client.line() == b"MESSAGE 1 put in\n"
    await client.nothing_more()
    deliveries = await edge.tools.get_domain(both.domain).peek(both, 10)
    found = [records.decode(record).body for delivery in deliveries for record in delivery.records()]
    assert found == [b"from a client", b"put in"]


async def test_order_is_kept_while_bindings_change(server: Server, start: Start) -> None:
    """Check that order is kept while bindings change (3.4, 5.1).

    Repeated sends stay in their sender's order, and none is lost or duplicated.
    """
    edge = await start(server)
    client, subscriber = await edge.client(), await edge.client()
    await subscriber.subscribe(b"1", b"s*")
    total, sent = 2000, 0
    for turn in range(20):
        block = b"".join(b"SEND s%d %d\n" % (n % 3, n) for n in range(sent, sent + total // 20))
        sent += total // 20
        await client.send(block)
        queue = await edge.declare(f"q{turn}", **subscribing("s1", f"s{turn % 3}*"))
        await edge.service.bridge.renew()  # as a link that was notified of BindingsChanged first
        if turn % 2:
            await edge.tools.catalogue.delete(queue)
    assert await client.lines(total) == [b"OK\n"] * total
    assert [int(line.split()[2]) for line in await subscriber.lines(total)] == list(range(total))
