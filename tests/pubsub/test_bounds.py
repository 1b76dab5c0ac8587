"""What clients may make the edge remember, and what is said where the log cannot be opened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from tests.live import set_up, until
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import store
from tests.servers import Server
from tests.stores import replicated
from tests.topologies import Replicated

__all__ = ["replicated"]


async def test_a_level_that_the_store_cannot_keep_is_told(server: Server) -> None:
    """pubsub.md 3.1: in the log, to whoever asks whether it is ready, and to clients; nothing waits for ever."""
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


async def test_no_more_subscriptions_of_all_than_allowed(server: Server, start: Start) -> None:
    edge = await start(server, max_subscriptions_in_all=3)
    one, two = await edge.client(), await edge.client()
    for number in range(3):
        await one.subscribe(b"%d" % number, b"t")
    assert (await two.ask(b"SUBSCRIBE 1 t\n")).startswith(b"ERROR no more than 3 subscriptions")
    assert await one.ask(b"UNSUBSCRIBE 1\n") == b"OK\n"
    await two.subscribe(b"1", b"t")


async def test_subscriptions_whose_answer_is_still_to_come_count_too(
    new_server: Callable[[], Server], start: Start
) -> None:
    """Else a client that asks for many at once would get more than allowed."""
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


async def test_long_patterns_count_as_what_a_client_makes_us_hold(server: Server, start: Start) -> None:
    """So the budget over all connections sees them, and whoever holds most has to go."""
    edge = await start(server)
    client = await edge.client()
    tag = b"t" * 50_000
    for number in range(5):
        await client.subscribe(b"%d" % number, tag + b"%d" % number)
    assert edge.budget.total >= 250_000
    for number in range(5):
        assert await client.ask(b"UNSUBSCRIBE %d\n" % number) == b"OK\n"
    assert edge.budget.total == 0


async def test_very_many_matches_of_one_connection_are_not_kept_for_every_tag(
    server: Server, start: Start
) -> None:
    edge = await start(server)
    hog, sender = await edge.client(), await edge.client()
    number = 2000
    await hog.send(b"".join(b"SUBSCRIBE %d a*\n" % n for n in range(number)))
    assert await hog.lines(number) == [b"OK\n"] * number
    for n in range(600):
        await sender.publish(b"a%d" % n, b"x")
    fanout: Any = edge.service.fanout
    kept = sum(len(identifiers) for groups in fanout._groups.values() for identifiers, *_ in groups)
    assert kept <= 1_000_000


async def test_long_tags_that_nobody_wants_are_not_kept(server: Server, start: Start) -> None:
    """A publisher of ever new tags fills the memory neither of this edge nor of others that follow the log."""
    edge = await start(server)
    hog, sender = await edge.client(), await edge.client()
    await hog.subscribe(b"1", b"nothing.here")
    fanout: Any = edge.service.fanout
    most = number = 0
    while not number or len(fanout._groups) >= most:  # until room was made
        most = max(most, len(fanout._groups))
        lines = [
            b"SEND %060d x\n" % n + b"SEND %b%d x\n" % (b"t" * 60_000, n) for n in range(number, number + 100)
        ]
        await sender.send(b"".join(lines))
        assert await sender.lines(200) == [b"OK\n"] * 200
        number += 100
    assert 0 < sum(map(len, fanout._groups)) <= most * 60_000 < 64 << 20


async def test_what_was_written_is_counted_once(server: Server, start: Start) -> None:
    """Also where a subscriber fell behind in between."""
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


async def test_a_line_longer_than_all_may_wait_reaches_everybody(server: Server, start: Start) -> None:
    """pubsub.md 3.6: in pieces, so that together they hold little of it."""
    edge = await start(
        server, subscribers_bytes=1 << 20, max_line_bytes=14 << 20, link={"max_line_bytes": 20 << 20}
    )
    clients = [await edge.client(receive_buffer=1 << 17) for _ in range(6)]
    for client in clients:
        await client.subscribe(b"1", b"t")
        client.stop_reading()
    sender = await edge.client()
    text = b"y" * (12 << 20)
    await sender.publish(b"t", text)
    delivered = -1

    async def nothing_leaves() -> bool:
        nonlocal delivered
        before, delivered = delivered, sum(connection.unsent() for connection in edge.connections())
        await asyncio.sleep(0.05)
        return bool(edge.service.laggards) and before == delivered

    await until(nothing_leaves)
    spent_s = time.process_time()
    await asyncio.sleep(0.5)
    assert time.process_time() - spent_s < 0.25, "those that wait for room are looked at all the time"
    for client in clients:
        assert sum(connection.backlog() for connection in edge.connections()) < 8 << 20
        client.read_on()
        assert await client.line() == b"MESSAGE 1 " + text + b"\n"


async def test_what_waits_for_the_table_of_bindings_is_bounded(server: Server, start: Start) -> None:
    """pubsub.md 5.1: clients are not read while too much waits; what waited too long is refused, nothing was stored."""
    edge = await start(server, store={"max_pending_bytes": 1 << 20})
    keys = edge.service.log.keys
    server.call("SET", keys.bindings[1], "damaged")
    server.call(
        "HSET", keys.bindings[0], "bindings", "1"
    )  # so every send is refused until the table has been read
    clients = [await edge.client() for _ in range(8)]
    block = b"SEND t %b\n" % (b"x" * 1000)
    number = 2000
    for client in clients:
        client.writer.write(block * number)
    await until(edge.service.bridge._has_too_much)
    for _ in range(50):
        assert edge.service.bridge._turns.bytes < (1 << 20) + len(clients) * (512 << 10)
        await asyncio.sleep(0.01)
    for client in clients:
        assert (await client.line()).startswith(b"ERROR ")
    server.call("DEL", keys.bindings[1])
    for client in clients:
        rest = await client.lines(number - 1)
        assert rest[-1] == b"OK\n"


async def test_a_log_opens_without_replicas_only_if_it_was_made_with_one(replicated: Replicated) -> None:
    """pubsub.md 3.1: subscribers are served meanwhile, and no log is made at a lower level."""
    await set_up(replicated)
    primary = replicated.primary()
    others = [node for node in replicated.nodes if node is not primary]
    edges = [LiveEdge(replicated.url), LiveEdge(replicated.url)]

    def unready(edge: LiveEdge) -> str:
        assert edge.running is not None
        return edge.running.readiness.unready() or ""

    try:
        for node in others:
            node.kill9()
        await edges[0].begin()
        await until(lambda: "this store has 0 now" in unready(edges[0]))
        for node in others:
            node.restart()
        await until(edges[0].is_ready)
        for node in others:
            node.kill9()
        await edges[1].open()
        assert edges[1].service.log.spec.ack_level == "replicated:1"
    finally:
        for edge in edges:
            await edge.close()
