"""Stores that fail, hang or return empty under a text pub/sub edge (pubsub.md 3.1, 3.2)."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from services.store import Store
from tests.live import set_up, until
from tests.pubsub.client import Client
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.servers import Server

NewServer = Callable[[], Server]
AWAY = b"ERROR the store cannot be reached; nothing was stored: try again later\n"  # and without its address
QUICK = {"store": {"patience_s": 0.3, "reply_timeout_s": 0.5}, "request_timeout_s": 3.0}


async def one(new_server: NewServer, start: Start) -> tuple[Server, LiveEdge]:
    server = new_server()
    await set_up(server)
    return server, await start(server, **QUICK)


def is_unready(edge: LiveEdge) -> bool:
    return not edge.is_ready()


async def test_a_subscriber_stays_while_the_store_dies_and_comes_back(
    new_server: NewServer, start: Start
) -> None:
    """Check that a subscriber stays while the store dies and recovers (3.1, 3.2).

    Sends answered OK are delivered once and in order; a SEND without a store is answered ERROR.
    """
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
        await until(lambda: edge.service.store.fault_of())
        assert await sender.ask(b"SEND t lost\n") == AWAY
        assert await sender.ask(b"SUBSCRIBE 1 t\n") == AWAY
        server.start()
        await until(edge.is_ready)
        await sender.subscribe(b"1", b"never")  # the identifier is free, as it was refused
    assert await subscriber.lines(len(sent)) == [b"MESSAGE 1 %b\n" % text for text in sent]
    await subscriber.nothing_more()


async def test_errors_do_not_reveal_the_store_address(
    new_server: NewServer, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """Check that an error does not contain the store's address; the log does, for the operator (3.1)."""
    server, edge = await one(new_server, start)
    server.kill9()
    await until(lambda: edge.service.store.fault_of())
    place = urlsplit(server.url).path or str(urlsplit(server.url).port)
    assert await (await edge.client()).ask(b"SEND t lost\n") == AWAY
    refused = [one for one in caplog.records if vars(one).get("action") == "refused"]
    assert any(place in one.getMessage() or place in str(vars(one)) for one in refused)


async def test_requests_under_way_are_answered_once_the_outcome_is_known(
    new_server: NewServer, start: Start
) -> None:
    """Check that requests under way are answered once their outcome is known (3.1).

    The store hangs for a moment: everything is stored once and answered.
    """
    server, edge = await one(new_server, start)
    subscriber, sender = await edge.client(), await edge.client()
    await subscriber.subscribe(b"1", b"t")
    server.stop()
    await sender.send(b"".join(b"SEND t %d\n" % n for n in range(100)))
    await asyncio.sleep(0.7)  # longer than the edge waits for a reply before it repeats the request
    server.cont()
    assert await sender.lines(100) == [b"OK\n"] * 100
    assert await subscriber.lines(100) == [b"MESSAGE 1 %d\n" % n for n in range(100)]
    await subscriber.nothing_more()


async def test_request_with_unknown_outcome_is_not_answered(new_server: NewServer, start: Start) -> None:
    """Check that requests with unknown outcome are not answered: the connection is closed (3.1).

    Other connections and earlier answers are not affected.
    """
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


async def test_foreign_log_entries_are_reported(new_server: NewServer, start: Start) -> None:
    """Check that a foreign entry in the log is reported and not skipped, as it might be a message.

    Once it is removed, the log is followed again.
    """
    server, edge = await one(new_server, start)
    client, sender = await edge.client(), await edge.client()
    await client.subscribe(b"1", b"t")
    await sender.publish(b"t", b"a")
    assert await client.line() == b"MESSAGE 1 a\n"
    place = edge.service.fanout.place
    assert place is not None
    stream = edge.service.log.keys.log[0]
    foreign = server.call("XADD", stream, f"{place.era}-{place.serial}9", "what", "is this")
    await until(lambda: "foreign entry" in (edge.service.readiness.unready() or ""))
    server.call("XDEL", stream, foreign)
    await until(edge.is_ready)


async def test_an_empty_store_is_not_taken_for_a_quiet_one(new_server: NewServer, start: Start) -> None:
    server, edge = await one(new_server, start)
    client = await edge.client()
    await client.subscribe(b"1", b"t")
    server.call("FLUSHALL")
    await until(lambda: is_unready(edge))
    assert (await client.ask(b"SEND t x\n")).startswith(b"ERROR ")
    store = Store(server.url, "test")  # an operator accepts the loss
    await store.initialise(accept_loss=True)
    await store.close()
    await until(edge.is_ready)
    sender = await edge.client()
    await sender.publish(b"t", b"new")
    assert await client.line() == b"MESSAGE 1 new\n"


async def test_no_more_than_the_store_can_hold(new_server: NewServer, start: Start) -> None:
    """Check that the log stays below a quarter of the store's memory, so that queues always have room."""
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


async def test_connection_lost_before_its_subscribe_leaves_nothing(
    new_server: NewServer, start: Start
) -> None:
    """Check that a connection lost before its SUBSCRIBE is answered leaves nothing (1.3, 3.2)."""
    server, edge = await one(new_server, start)
    client = await edge.client()
    server.stop()
    # so the others are read, too
    assert await client.ask(b"PING\nSUBSCRIBE 1 t\nSUBSCRIBE 2 t*\n") == b"OK\n"
    reset(client)
    await until(lambda: not edge.connections())
    server.cont()
    other = await edge.client()
    await other.subscribe(b"1", b"t")  # requested later, so answered later
    assert edge.routed == 1
    await other.send(b"SEND t x\n")
    assert sorted(await other.lines(2)) == [b"MESSAGE 1 x\n", b"OK\n"]


def reset(client: Client) -> None:
    """Send RST instead of FIN, as after a crash or by a firewall."""
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
