"""Bounds of the edge's memory, and reports while the log cannot be opened."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Callable

import pytest

from services.pubsub import fanout as fanout_module
from services.pubsub.backlogs import Backlogs
from services.pubsub.subscriber import Subscriber, Subscription
from services.store.log.log import Entry, Place
from tests.live import set_up, until
from tests.pubsub.conftest import Start
from tests.pubsub.fake_wire import FakeWire
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import store
from tests.servers import Server
from tests.topologies import Replicated


async def test_unsupported_ack_level_is_reported(server: Server) -> None:
    """Check that an unsupported ack level is reported in the log, in readiness and to clients (pubsub.md 3.1).

    No request waits forever.
    """
    edge = LiveEdge(server.url, log={"ack_level": "replicated:1"})
    await edge.begin()
    try:
        client = await edge.client()
        answer = await client.ask(b"SEND t x\n")
        assert answer.startswith(b"ERROR ")
        assert b"replica" in answer
        await until(lambda: "replica" in ((edge.running and edge.running.readiness.unready()) or ""))
        assert await client.ask(b"PING\n") == b"OK\n"
    finally:
        await edge.close()


async def test_total_subscriptions_are_limited(server: Server, start: Start) -> None:
    edge = await start(server, max_subscriptions_in_all=3)
    one, two = await edge.client(), await edge.client()
    for number in range(3):
        await one.subscribe(b"%d" % number, b"t")
    assert (await two.ask(b"SUBSCRIBE 1 t\n")).startswith(b"ERROR no more than 3 subscriptions")
    assert await one.ask(b"UNSUBSCRIBE 1\n") == b"OK\n"
    await two.subscribe(b"1", b"t")


async def test_pending_subscriptions_count_towards_the_limit(
    new_server: Callable[[], Server], start: Start
) -> None:
    """Check that pending subscriptions count towards the limit, for clients that request many at once."""
    server = await store(new_server)
    edge = await start(server, max_subscriptions_in_all=3)
    one, two = await edge.client(), await edge.client()
    server.stop()
    await one.send(b"".join(b"SUBSCRIBE %d t\n" % n for n in range(5)) + b"UNSUBSCRIBE 0\nSUBSCRIBE 9 t\n")
    await until(lambda: edge.refusals()["too_many_subscriptions"] == 2)
    server.cont()
    full = b"ERROR no more than 3 subscriptions here\n"
    assert await one.lines(7) == [b"OK\n"] * 3 + [full] * 2 + [b"OK\n"] * 2
    await until(lambda: edge.value("penstock_subscriptions") == 3)
    assert await two.ask(b"SUBSCRIBE 1 t\n") == full
    one.close()
    await until(lambda: edge.value("penstock_subscriptions") == 0)
    await two.subscribe(b"1", b"t")


async def test_long_patterns_count_as_held_input(server: Server, start: Start) -> None:
    """Check that long patterns count as held input.

    So the budget over all connections includes them, and the connection that holds most is closed.
    """
    edge = await start(server)
    client = await edge.client()
    tag = b"t" * 50_000
    for number in range(5):
        await client.subscribe(b"%d" % number, tag + b"%d" % number)
    assert edge.budget.total >= 250_000
    for number in range(5):
        assert await client.ask(b"UNSUBSCRIBE %d\n" % number) == b"OK\n"
    assert edge.budget.total == 0


@pytest.mark.parametrize(
    ("number", "pattern", "tag_octets"), [(1, b"nothing.here", 60_000), (1000, b"a", 10)]
)
def test_cache_of_tags_is_bounded(
    monkeypatch: pytest.MonkeyPatch, number: int, pattern: bytes, tag_octets: int
) -> None:
    """Check that the cache of tags is bounded, for publishers of ever new, long or widely matching tags."""
    monkeypatch.setattr(fanout_module, "CACHED", 2_000)
    fanout, paper = fanout_module.Fanout(Backlogs(8 << 20, 128 << 20), lambda *_: None), FakeWire()
    fanout.place = Place(1, 0)
    subscriber = Subscriber(paper, True)  # type: ignore[arg-type]
    for each in range(number):
        subscription = Subscription(subscriber, b"%d" % each, pattern, True)
        subscription.number = next(fanout.numbers)
        fanout.add(subscription, Place(1, 0))
    tracemalloc.start()
    try:
        for serial in range(1, 101):
            line = b"SEND a%d%b m\n" % (serial, b"x" * tag_octets)
            fanout.deliver([Entry(Place(1, serial), 1, b"s i", serial, False, line)])
            assert len(b"".join(paper.written).splitlines()) == (number if pattern == b"a" else 0)
            paper.written.clear()
        assert tracemalloc.get_traced_memory()[0] < 200_000
    finally:
        tracemalloc.stop()


async def test_deliveries_are_counted_once(server: Server, start: Start) -> None:
    """Check that deliveries are counted once, also after a subscriber fell behind."""
    edge = await start(server, subscriber_bytes=64 << 10)
    slow, sender = await edge.client(receive_buffer=4096), await edge.client()
    await slow.subscribe(b"1", b"t")
    slow.stop_reading()
    total = 4000
    for start_at in range(0, total, 500):
        await sender.send(
            b"".join(b"SEND t %d %b\n" % (n, b"x" * 1000) for n in range(start_at, start_at + 500))
        )
        assert await sender.lines(500) == [b"OK\n"] * 500
    slow.read_on()
    assert len(await slow.lines(total)) == total
    await until(lambda: edge.value("penstock_deliveries_total") == total)


async def test_line_longer_than_the_output_limit_reaches_all_subscribers(
    server: Server, start: Start
) -> None:
    """Check that a line longer than the output limit reaches all subscribers in pieces (pubsub.md 3.6).

    Together they hold little of it.
    """
    edge = await start(
        server, subscribers_bytes=1 << 20, max_line_bytes=10 << 20, link={"max_line_bytes": 20 << 20}
    )
    clients = [await edge.client(receive_buffer=1 << 17) for _ in range(4)]
    for client in clients:
        await client.subscribe(b"1", b"t")
        client.stop_reading()
    sender = await edge.client()
    text = b"y" * (9 << 20)
    await sender.publish(b"t", text)
    delivered = -1

    async def nothing_leaves() -> bool:
        nonlocal delivered
        before, delivered = delivered, sum(connection.unsent() for connection in edge.connections())
        await asyncio.sleep(0.05)
        return bool(edge.service.slow_consumers) and before == delivered

    await until(nothing_leaves)
    spent_s = time.process_time()
    await asyncio.sleep(0.5)
    assert time.process_time() - spent_s < 0.25, "waiting consumers are polled continuously"
    for client in clients:
        assert sum(connection.backlog() for connection in edge.connections()) < 8 << 20
        client.read_on()
        assert await client.line() == b"MESSAGE 1 " + text + b"\n"


async def test_sends_that_wait_for_the_bindings_are_bounded(server: Server, start: Start) -> None:
    """Check that sends that wait for the bindings are bounded (pubsub.md 5.1).

    Clients are not read while too many wait; those that waited too long are refused and not stored.
    """
    edge = await start(server, store={"max_pending_bytes": 1 << 20})
    keys = edge.service.log.keys
    server.call("SET", keys.bindings[1], "damaged")
    # so each send is refused until the table has been read
    server.call("HSET", keys.bindings[0], "bindings", "1")
    clients = [await edge.client() for _ in range(4)]
    block = b"SEND t %b\n" % (b"x" * 1000)
    number = 2000
    for client in clients:
        client.writer.write(block * number)
    await until(lambda: edge.service.bridge.waiting.bytes > 1 << 20)
    for _ in range(50):
        assert edge.service.bridge.waiting.bytes < (1 << 20) + len(clients) * (512 << 10)
        await asyncio.sleep(0.01)
    for client in clients:
        assert (await client.line()).startswith(b"ERROR ")
    server.call("DEL", keys.bindings[1])
    for client in clients:
        rest = await client.lines(number - 1)
        assert rest[-1] == b"OK\n"


async def test_log_opens_without_replicas_only_if_created_with_one(
    whole_replicated: Replicated,
) -> None:
    """Check that a log opens without replicas only if it was created with one (pubsub.md 3.1).

    Subscribers are served meanwhile, and no log is created at a lower level.
    """
    await set_up(whole_replicated)
    edges = [LiveEdge(whole_replicated.url), LiveEdge(whole_replicated.url)]

    def unready(edge: LiveEdge) -> str:
        assert edge.running is not None
        return edge.running.readiness.unready() or ""

    try:
        with whole_replicated.without_replicas():
            await edges[0].begin()
            await until(lambda: "this store has 0 now" in unready(edges[0]))
        await until(edges[0].is_ready)
        with whole_replicated.without_replicas():
            await edges[1].open()
            assert edges[1].service.log.spec.ack_level == "replicated:1"
    finally:
        for edge in edges:
            await edge.close()
