"""The store dies, stands still, or comes back empty, under a text pub/sub edge (pubsub.md 3.1, 3.2)."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable

import pytest

from services.store import Store
from services.store.log import parse_place
from tests.live import set_up, until
from tests.pubsub.cable import Cable
from tests.pubsub.client import Client
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.servers import Server

NewServer = Callable[[], Server]
QUICK = {"store": {"patience_s": 0.3, "reply_timeout_s": 0.5}, "request_timeout_s": 3.0}


async def one(new_server: NewServer, start: Start) -> tuple[Server, LiveEdge]:
    server = new_server()
    await set_up(server)
    return server, await start(server, **QUICK)


@pytest.fixture
async def cable(server: Server) -> AsyncIterator[Cable]:
    """Between an edge and the shared store."""
    async with Cable(server.port) as between:
        yield between


async def blind(cable: Cable, server: Server, edge: LiveEdge) -> None:
    """The edge does not see the log any more, until the cable is plugged in; all else that it asks is answered."""
    cable.take_no_more()
    followers = await until(lambda: [line for line in clients(server) if b" cmd=xread " in line])
    for line in followers:
        server.call("CLIENT", "KILL", "ID", line.split()[0].removeprefix(b"id="))
    await until(lambda: is_unready(edge))


def clients(server: Server) -> list[bytes]:
    found: bytes = server.call("CLIENT", "LIST")
    return found.splitlines()


def is_unready(edge: LiveEdge) -> bool:
    return not edge.is_ready()


async def test_a_subscriber_stays_while_the_store_dies_and_comes_back(
    new_server: NewServer, start: Start
) -> None:
    """3.1, 3.2: what is answered OK is delivered once and in order; a SEND without a store is answered ERROR."""
    server, edge = await one(new_server, start)
    subscriber = await edge.client()
    await subscriber.subscribe(b"1", b"t*")
    sent: list[bytes] = []
    for turn in range(3):
        sender = await edge.client()
        for number in range(50):
            text = b"%d %d" % (turn, number)
            await sender.publish(b"t", text)
            sent.append(text)
        server.kill9()
        await until(lambda: edge.service.store.trouble)
        assert (await sender.ask(b"SEND t lost\n")).startswith(b"ERROR the store")
        assert (await sender.ask(b"SUBSCRIBE 1 t\n")).startswith(b"ERROR the store")
        server.start()
        await until(edge.is_ready)
        await sender.subscribe(b"1", b"never")  # the identifier is free, for it was refused
    assert await subscriber.lines(len(sent)) == [b"MESSAGE 1 %b\n" % text for text in sent]
    await subscriber.nothing_more()


async def test_what_was_under_way_is_answered_once_it_is_known(new_server: NewServer, start: Start) -> None:
    """3.1: the store stands still for a moment: everything is stored once, and answered."""
    server, edge = await one(new_server, start)
    subscriber, sender = await edge.client(), await edge.client()
    await subscriber.subscribe(b"1", b"t")
    server.stop()
    await sender.send(b"".join(b"SEND t %d\n" % n for n in range(100)))
    await asyncio.sleep(0.7)  # longer than the edge waits for a reply before it asks again
    server.cont()
    assert await sender.lines(100) == [b"OK\n"] * 100
    assert await subscriber.lines(100) == [b"MESSAGE 1 %d\n" % n for n in range(100)]
    await subscriber.nothing_more()


async def test_what_cannot_be_learnt_is_not_answered(new_server: NewServer, start: Start) -> None:
    """3.1: the connection is closed instead; others, and what was answered before, are not touched."""
    server, edge = await one(new_server, start)
    sender, other = await edge.client(), await edge.client()
    await sender.publish(b"t", b"certain")
    server.stop()
    await sender.send(b"SEND t uncertain\n")
    await sender.closed()
    server.cont()
    await until(edge.is_ready)
    await other.publish(b"t", b"well")
    assert edge.refusals()["outcome_unknown"] == 1


async def test_what_somebody_else_put_into_the_log_is_told(new_server: NewServer, start: Start) -> None:
    """Not skipped, for it might be a message; once it is taken out, the log is followed again."""
    server, edge = await one(new_server, start)
    client, sender = await edge.client(), await edge.client()
    await client.subscribe(b"1", b"t")
    await sender.publish(b"t", b"a")
    assert await client.line() == b"MESSAGE 1 a\n"
    place = edge.service.fanout.place
    assert place is not None
    stream = edge.service.log.keys.log[0]
    foreign = server.call("XADD", stream, f"{place.era}-{place.serial}9", "what", "is this")
    await until(lambda: "no entry" in (edge.service.ready() or ""))
    server.call("XDEL", stream, foreign)
    await until(edge.is_ready)


async def test_an_empty_store_is_not_taken_for_a_quiet_one(new_server: NewServer, start: Start) -> None:
    server, edge = await one(new_server, start)
    client = await edge.client()
    await client.subscribe(b"1", b"t")
    server.call("FLUSHALL")
    await until(lambda: is_unready(edge))
    assert (await client.ask(b"SEND t x\n")).startswith(b"ERROR ")
    store = Store(server.url, "test")  # somebody accepts the loss
    await store.initialise(accept_loss=True)
    await store.close()
    await until(edge.is_ready)
    sender = await edge.client()
    await sender.publish(b"t", b"new")
    assert await client.line() == b"MESSAGE 1 new\n"


async def test_no_more_than_the_store_can_hold(new_server: NewServer, start: Start) -> None:
    """The log stays below a quarter of the store's memory, so that it never shuts the queues out."""
    server, edge = await one(new_server, start)
    server.call("CONFIG", "SET", "maxmemory", str(24 << 20))
    server.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
    sender = await edge.client()
    block = b"".join(b"SEND t %b\n" % (b"x" * 1000) for _ in range(200))
    for _ in range(300):
        await sender.send(block)
        lines = await sender.lines(200)
        if set(lines) != {b"OK\n"}:
            assert all(line == b"OK\n" or line.startswith(b"ERROR the store's memory") for line in lines)
            await asyncio.sleep(0.05)
    await until(lambda: bytes_of_the_log(edge))
    assert await until(lambda: has_room(sender))


async def bytes_of_the_log(edge: LiveEdge) -> bool:
    return int((await edge.service.log.figures())["bytes"]) <= 6 << 20


async def has_room(client: Client) -> bool:
    return await client.ask(b"SEND t last\n") == b"OK\n"


async def test_away_for_longer_than_the_log_goes_back_all_are_told(
    cable: Cable, server: Server, start: Start
) -> None:
    """3.6: each subscriber learns how many messages it missed, and is closed; who only sends notices nothing."""
    most = 1 << 16
    edge = await start(cable, log={"max_bytes": most, "trim_s": 0.05})
    subscribers, sender = [await edge.client() for _ in range(3)], await edge.client()
    for client, pattern in zip(subscribers, (b"t", b"t*", b"another"), strict=True):
        await client.subscribe(b"1", pattern)
    await sender.publish(b"t", b"seen")
    assert await subscribers[0].line() == await subscribers[1].line() == b"MESSAGE 1 seen\n"
    seen = edge.service.fanout.place
    assert seen is not None
    assert edge.service.recent.after(seen) == []
    await blind(cable, server, edge)
    for _ in range(20):
        await sender.send(b"SEND t %b\n" % (b"x" * 1000) * 20)
        assert await sender.lines(20) == [b"OK\n"] * 20

    async def is_trimmed() -> bool:
        figures = await edge.service.log.figures()
        return int(figures["bytes"]) <= most and int(figures["trimmed_messages"]) > 100

    await until(is_trimmed)
    lost = parse_place((await edge.service.log.figures())["trimmed"]).serial - seen.serial
    cable.plug_in()
    for client in subscribers:
        assert await client.line() == b"ERROR slow subscriber: %d messages lost\n" % lost
        await client.closed()
    assert edge.refusals()["slow_subscriber"] == len(subscribers)
    assert (
        edge.service.recent.after(seen) is None
    )  # memory does not hide the hole from who comes from before it
    await until(lambda: len(edge.service.fanout) == 0)
    await sender.subscribe(b"1", b"t")
    await sender.send(b"SEND t after\n")
    assert sorted(await sender.lines(2)) == [b"MESSAGE 1 after\n", b"OK\n"]


async def test_what_is_unsubscribed_before_its_time_never_comes(
    cable: Cable, server: Server, start: Start
) -> None:
    """2.2, 3.2, 3.6: the log that the edge has seen ends before the moment of these subscriptions."""
    edge = await start(cable)
    subscriber, leaving, sender = await edge.client(), await edge.client(), await edge.client()
    await blind(cable, server, edge)
    await sender.publish(b"t", b"before")
    for identifier in (b"1", b"2", b"3"):
        await subscriber.subscribe(identifier, b"t*")
        await leaving.subscribe(identifier, b"t")
    assert await subscriber.ask(b"UNSUBSCRIBE 1\n") == b"OK\n"
    assert await subscriber.ask(b"UNSUBSCRIBE 3\n") == b"OK\n"
    await subscriber.subscribe(b"3", b"other")
    leaving.close()
    await until(lambda: len(edge.service.fanout) == 2)
    cable.plug_in()
    await until(edge.is_ready)
    await sender.publish(b"t", b"after")
    assert await subscriber.line() == b"MESSAGE 2 after\n"
    await sender.publish(b"other", b"last")
    assert await subscriber.line() == b"MESSAGE 3 last\n"
    await subscriber.nothing_more()
    assert len(edge.service.fanout) == 2
    assert edge.value("penstock_local_errors_total") == 0


async def test_who_is_gone_before_its_subscribe_is_answered_leaves_nothing(
    new_server: NewServer, start: Start
) -> None:
    """1.3, 3.2: the connection is lost while the store is asked."""
    server, edge = await one(new_server, start)
    client = await edge.client()
    server.stop()
    assert (
        await client.ask(b"PING\nSUBSCRIBE 1 t\nSUBSCRIBE 2 t*\n") == b"OK\n"
    )  # so the others are read, too
    reset(client)
    await until(lambda: not edge.connections())
    server.cont()
    other = await edge.client()
    await other.subscribe(b"1", b"t")  # asked later, so answered later
    assert len(edge.service.fanout) == 1
    await other.send(b"SEND t x\n")
    assert sorted(await other.lines(2)) == [b"MESSAGE 1 x\n", b"OK\n"]


def reset(client: Client) -> None:
    """RST instead of FIN: what a crash or a firewall leaves."""
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
