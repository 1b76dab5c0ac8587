"""An edge that cannot read the log for a while, while other store requests work (pubsub.md 3.2, 3.6)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.store.log.log import Place, parse_place
from tests.live import until
from tests.pubsub.cable import Cable
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.slow import SMALL, TIGHT, LateAnswers, behind, publish, stuck
from tests.servers import Server

MOST = 1 << 16  # octets kept in the log
SHORT = {"max_bytes": MOST, "trim_s": 0.05}


@pytest.fixture
async def cable(server: Server) -> AsyncIterator[Cable]:
    """Return a cable between an edge and the shared store."""
    async with Cable(server.port) as between:
        yield between


async def blind(cable: Cable, server: Server, edge: LiveEdge) -> None:
    """Cut the edge off from the log until the cable is restored; its other requests are answered."""
    cable.take_no_more()
    followers = await until(lambda: [line for line in clients(server) if b" cmd=xread " in line])
    for line in followers:
        server.call("CLIENT", "KILL", "ID", line.split()[0].removeprefix(b"id="))
    await until(lambda: not edge.is_ready())


def clients(server: Server) -> list[bytes]:
    found: bytes = server.call("CLIENT", "LIST")
    return found.splitlines()


async def trimmed(edge: LiveEdge, most: int = MOST) -> int:
    """Wait until the log is trimmed; return how many messages were trimmed."""

    async def is_short() -> bool:
        return int((await edge.service.log.figures())["bytes"]) <= most

    await until(is_short)
    return parse_place((await edge.service.log.figures())["trimmed"]).serial


async def followed(edge: LiveEdge) -> Place:
    """Return the place up to which the edge has read the log."""
    place: Place = await until(lambda: edge.service.fanout.place)
    return place


async def test_subscribers_learn_how_many_messages_were_trimmed_during_an_outage(
    cable: Cable, server: Server, start: Start
) -> None:
    """Check that subscribers learn how many messages were trimmed during an outage, and are closed (3.6).

    Pure senders are not affected.

    1.1: each line ends as the client's own last line.
    """
    edge = await start(cable, log=SHORT)
    subscribers, sender = [await edge.client() for _ in range(3)], await edge.client()
    for client, pattern in zip(subscribers, (b"t", b"t*", b"another"), strict=True):
        await client.subscribe(b"1", pattern)
    assert await subscribers[2].ask(b"PING\r\n") == b"OK\r\n"
    await sender.publish(b"t", b"seen")
    assert await subscribers[0].line() == await subscribers[1].line() == b"MESSAGE 1 seen\n"
    seen = await followed(edge)
    assert edge.service.recent_entries.after(seen) == []
    await blind(cable, server, edge)
    await publish(sender, 0, 400, at_once=20)
    assert await trimmed(edge) - seen.serial > 300
    lost = 400
    cable.plug_in()
    for client, end in zip(subscribers, (b"\n", b"\n", b"\r\n"), strict=True):
        assert await client.line() == b"ERROR slow subscriber: %d messages lost%b" % (lost, end)
        await client.closed()
    assert edge.refusals()["slow_subscriber"] == len(subscribers)
    assert edge.value("penstock_subscriber_lost_messages_total") == lost * len(subscribers)
    # memory does not hide the gap from consumers behind it
    assert edge.service.recent_entries.after(seen) is None
    await until(lambda: edge.routed == 0)
    await sender.subscribe(b"1", b"t")
    await sender.send(b"SEND t after\n")
    assert sorted(await sender.lines(2)) == [b"MESSAGE 1 after\n", b"OK\n"]


async def test_loss_is_counted_from_each_subscriptions_begin(
    cable: Cable, server: Server, start: Start
) -> None:
    """Check that loss is counted from each subscription's begin: later ones lost fewer or none (3.2, 3.6)."""
    edge = await start(cable, log=SHORT)
    early, meanwhile, late, sender = [await edge.client() for _ in range(4)]
    await early.subscribe(b"1", b"t")
    seen = (await followed(edge)).serial
    await blind(cable, server, edge)
    await publish(sender, 0, 400, at_once=20)
    await meanwhile.subscribe(b"1", b"never")
    await publish(sender, 400, 200, at_once=20)
    await late.subscribe(b"1", b"t")
    await late.subscribe(b"2", b"t*")
    assert await trimmed(edge) > seen + 400
    cable.plug_in()
    assert await early.line() == b"ERROR slow subscriber: 600 messages lost\n"
    assert await meanwhile.line() == b"ERROR slow subscriber: 200 messages lost\n"
    for client in (early, meanwhile):
        await client.closed()
    await sender.publish(b"t", b"after")
    assert await late.lines(2) == [b"MESSAGE 1 after\n", b"MESSAGE 2 after\n"]
    await late.nothing_more()
    assert edge.refusals()["slow_subscriber"] == 2


async def test_slow_subscriber_counts_its_loss_from_its_own_place(
    cable: Cable, server: Server, start: Start
) -> None:
    """Check that a slow subscriber counts its loss from its own place, which may be before the edge's (3.6)."""
    edge = await start(cable, log={**SHORT, "max_bytes": 16 << 20}, **TIGHT)
    slow, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    await slow.subscribe(b"1", b"t")
    slow.stop_reading()
    await publish(sender, 0, 6000)
    await until(lambda: behind(edge) == 1)
    await stuck(edge)
    await blind(cable, server, edge)
    server.call("HSET", edge.service.log.keys.log[1], "max_bytes", MOST)
    await publish(sender, 6000, 400, at_once=20)
    await trimmed(edge)
    cable.plug_in()
    await until(edge.is_ready)
    await sender.publish(b"t", b"so that it is noticed")
    slow.read_on()
    got = 0
    while (line := await slow.line()).startswith(b"MESSAGE 1 %d " % got):
        got += 1
    assert line == b"ERROR slow subscriber: %d messages lost\n" % (6401 - got)
    await slow.closed()


@pytest.mark.parametrize("has_more", [False, True])
async def test_late_subscription_counts_its_loss_from_its_own_place(
    cable: Cable, server: Server, start: Start, has_more: bool
) -> None:
    """Check that a late subscription counts its loss from its own place (3.2, 3.6).

    The answer to its SUBSCRIBE was slower than the log.

    If another subscription of its connection is on time, that one's loss is detected first; it is reported once, for
    all.
    """
    most = 8 << 20
    edge = await start(cable, log={"max_bytes": most, "trim_s": 0.05}, **TIGHT)
    slow, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    if has_more:
        await slow.subscribe(b"2", b"never")
    answers = LateAnswers(edge)
    await slow.send(b"SUBSCRIBE 1 t\n")
    await answers.given()
    slow.stop_reading()
    await publish(sender, 0, 6000)
    (late,) = await answers.let_through()
    await stuck(edge)
    await blind(cable, server, edge)
    await publish(sender, 6000, 12_000)
    await trimmed(edge, most)
    assert late.is_late
    cable.plug_in()
    await until(edge.is_ready)
    slow.read_on()
    assert await slow.line() == b"OK\n"
    got = 0
    while (line := await slow.line()).startswith(b"MESSAGE 1 %d " % got):
        got += 1
    assert line == b"ERROR slow subscriber: %d messages lost\n" % (18_000 - got)
    await slow.closed()
    assert edge.refusals()["slow_subscriber"] == 1


async def test_subscription_ended_before_its_begin_gets_nothing(
    cable: Cable, server: Server, start: Start
) -> None:
    """Check that a subscription ended before its begin gets nothing (2.2, 3.2, 3.6).

    The log that the edge has read ends before the begin of these subscriptions.
    """
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
    await until(lambda: edge.routed == 2)
    cable.plug_in()
    await until(edge.is_ready)
    await sender.publish(b"t", b"after")
    assert await subscriber.line() == b"MESSAGE 2 after\n"
    await sender.publish(b"other", b"last")
    assert await subscriber.line() == b"MESSAGE 3 last\n"
    await subscriber.nothing_more()
    assert edge.routed == 2
    assert edge.value("penstock_local_errors_total") == 0
