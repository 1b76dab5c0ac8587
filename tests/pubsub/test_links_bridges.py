"""Bridges to queues at both ends of a link (pubsub.md 5)."""

from __future__ import annotations

from services.store import DeadLetter, DeadLetters, Queue
from services.store.model import records
from services.store.pipeline.async_client import AsyncClient
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import NewServer, hold_the_same, linked, messages, numbered, send_all, store
from tests.pubsub.test_bridges import subscribing


async def pair(new_server: NewServer, start: Start) -> tuple[LiveEdge, LiveEdge]:
    """Start two linked stores."""
    one = await start(await store(new_server))
    two = await start(await store(new_server), neighbours=[one.link_address])
    await linked(one)
    await linked(two)
    return one, two


async def bodies(edge: LiveEdge, queue: Queue) -> list[bytes]:
    """Return the ready messages of the queue."""
    deliveries = await edge.tools.get_domain(queue.domain).peek(queue, 1000)
    return [records.decode(record).body for delivery in deliveries for record in delivery.records()]


async def dead(edge: LiveEdge, queue: Queue) -> list[DeadLetter]:
    return [letter async for letter in DeadLetters(edge.tools.get_domain(queue.domain), queue).matching()]


async def put(edge: LiveEdge, queue: Queue, *texts: bytes) -> None:
    """Put as a client of another protocol does."""
    pipe = edge.tools.open_domain(queue.domain).pipe
    await pipe.ready()
    assert await AsyncClient(pipe).publish(queue, [records.encode(text) for text in texts], "test") == []


async def test_message_over_a_link_is_copied_into_subscribing_queues(
    new_server: NewServer, start: Start
) -> None:
    """Check that a message over a link is copied into subscribing queues when it is stored (5.1).

    This includes a queue declared after the link was set up.
    """
    one, two = await pair(new_server, start)
    sender = await one.client()
    await send_all(sender, b"order.new", [b"before"])
    await hold_the_same(one, two)
    queue = await two.declare("orders", **subscribing("order.*"))
    block = [b"SEND order.new a\n", b"SEND other b\n", b"SEND order.old c\n", b"SEND order.new d\n"]
    await sender.send(b"".join(block))
    assert await sender.lines(4) == [b"OK\n"] * 4
    await hold_the_same(one, two)
    assert await bodies(two, queue) == [b"a", b"c", b"d"]


async def test_full_queue_does_not_block_the_link(new_server: NewServer, start: Start) -> None:
    """Check that a full queue does not block the link: its copies become dead letters (5.1).

    Another queue and all subscribers get theirs.
    """
    one, two = await pair(new_server, start)
    full = await two.declare("full", **subscribing("t", maxLength=3))
    roomy = await two.declare("roomy", **subscribing("t"))
    reader = await two.client()
    await reader.subscribe(b"1", b"t")
    sent = numbered("m", 8)
    await send_all(await one.client(), b"t", sent)
    assert await reader.lines(8) == [b"MESSAGE 1 %b\n" % message for message in sent]
    assert await bodies(two, full) == sent[:3]
    letters = await dead(two, full)
    assert [letter.body for letter in letters] == sent[3:]
    assert {letter.reason for letter in letters} == {"rejected_full"}
    assert await bodies(two, roomy) == sent
    assert await (await two.client()).ask(b"SEND t m\n") == b"ERROR a queue that takes this tag is full\n"


async def test_bridged_message_crosses_no_bridge_behind_a_link(new_server: NewServer, start: Start) -> None:
    """Check that a bridged message crosses no bridge behind a link, also at the neighbour's neighbour (5.2).

    BRIDGED: all subscribers get it, and no queue.
    """
    one, two = await pair(new_server, start)
    three = await start(await store(new_server), neighbours=[two.link_address])
    await linked(three)
    await linked(two, 2)
    source = await one.declare("source", bindings={"text": {"publish": "t1"}})
    queues = [await edge.declare("copies", **subscribing("t*")) for edge in (two, three)]
    readers = [await edge.client() for edge in (two, three)]
    for reader in readers:
        await reader.subscribe(b"1", b"t*")
    await put(one, source, b"from a queue", b"another\nline")
    await send_all(await one.client(), b"t2", [b"from a client"])
    expected = [b"from a queue", rb"another\nline", b"from a client"]
    for reader in readers:
        assert await reader.lines(3) == [b"MESSAGE 1 %b\n" % message for message in expected]
    for edge, queue in zip((two, three), queues, strict=True):
        assert await messages(edge) == expected
        assert await bodies(edge, queue) == [b"from a client"]


async def test_copy_over_a_link_is_not_published_again(new_server: NewServer, start: Start) -> None:
    """Check that a copy over a link is not published again, so that two queues cannot feed each other (5.2)."""
    one, two = await pair(new_server, start)
    here = await one.declare("here", bindings={"text": {"subscribe": ["b"], "publish": "a"}})
    there = await two.declare("there", bindings={"text": {"subscribe": ["a"], "publish": "b"}})
    await send_all(await one.client(), b"a", [b"one"])
    await send_all(await two.client(), b"b", [b"two"])
    await put(one, here, b"three")
    await hold_the_same(one, two, number=3)
    assert sorted(await messages(one)) == sorted(await messages(two)) == [b"one", b"three", b"two"]
    assert sorted(await bodies(one, here)) == [b"three", b"two"]
    assert await bodies(two, there) == [b"one"]
