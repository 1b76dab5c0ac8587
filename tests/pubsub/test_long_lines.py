"""Lines that are longer than a turn, beside subscribers that do not read (pubsub.md 3.6)."""

from __future__ import annotations

import asyncio

import pytest

from services.pubsub import backlogs
from services.store import records
from services.store.asking import Asker
from tests.live import until
from tests.pubsub.client import Client
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.slow import SMALL, behind, publish
from tests.servers import Server

LONG = {"max_line_bytes": 4 << 20, "link": {"max_line_bytes": 8 << 20}}
TEXT = b"y" * (3 << 20)


async def stuck_clients(edge: LiveEdge, number: int, tag: bytes) -> list[Client]:
    clients = [await edge.client(receive_buffer=SMALL) for _ in range(number)]
    for client in clients:
        await client.subscribe(b"1", tag)
        client.stop_reading()
    return clients


async def test_what_others_do_not_read_keeps_no_long_line_from_who_reads(
    server: Server, start: Start
) -> None:
    """What waits for eighteen clients that read nothing is all that may wait; the line comes out of a queue."""
    edge = await start(server, subscribers_bytes=16 << 20, subscriber_bytes=1 << 20)
    queue = await edge.declare("events", bindings={"text": {"publish": "ev"}})
    stuck = await stuck_clients(edge, 18, b"junk")
    reader, sender = await edge.client(), await edge.client()
    await reader.subscribe(b"1", b"ev")
    await reader.subscribe(b"2", b"t")
    sent = 0
    while behind(edge) < len(stuck):
        await publish(sender, sent, 500, b"junk", at_once=50)
        sent += 500
    pipe = edge.tools.domain(queue.domain).pipe
    await pipe.ready()
    body = b"y" * 300_000
    assert await Asker(pipe).publish(queue, [records.encode(body)], "test") == []
    await sender.publish(b"t", b"short")
    assert await reader.lines(2) == [b"MESSAGE 1 " + body + b"\n", b"MESSAGE 2 short\n"]


async def test_one_that_holds_a_long_line_and_takes_nothing_makes_way(
    server: Server, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who read get each line; it is counted why the other was closed."""
    monkeypatch.setattr(backlogs, "STALLED_S", 0.3)
    edge = await start(server, subscribers_bytes=1 << 20, **LONG)
    (stuck,) = await stuck_clients(edge, 1, b"t")
    readers = [await edge.client() for _ in range(4)]
    for reader in readers:
        await reader.subscribe(b"1", b"t")
    sender = await edge.client()
    for _ in range(4):
        await sender.publish(b"t", TEXT)
        for line in await asyncio.gather(*(reader.line() for reader in readers)):
            assert line == b"MESSAGE 1 " + TEXT + b"\n"
    assert edge.refusals()["unread_long_lines"] == 1
    await until(lambda: edge.value("penstock_subscriptions") == len(readers))
    stuck.close()


async def test_who_takes_some_of_his_is_not_closed(
    server: Server, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slowly, and though another waits all the time."""
    monkeypatch.setattr(backlogs, "STALLED_S", 0.5)
    edge = await start(server, subscribers_bytes=1 << 20, **LONG)
    slow, other = await stuck_clients(edge, 2, b"t")
    sender = await edge.client()
    await sender.publish(b"t", TEXT)
    whole = b"MESSAGE 1 " + TEXT + b"\n"
    got = [await taken_slowly(client) for client in (slow, other)]
    assert got == [whole, whole]
    assert "unread_long_lines" not in edge.refusals()


async def taken_slowly(client: Client) -> bytes:
    """A line, in pieces, with a pause after each that alone would be no stall."""
    client.read_on()
    got = b""
    while not got.endswith(b"\n"):
        got += await client.reader.read(400_000)
        await asyncio.sleep(0.1)
    return got


async def test_unsubscribed_nobody_waits_for_a_long_line(server: Server, start: Start) -> None:
    """The other tags of a subscriber whose long line found no room go on at once when it does not want it any more."""
    edge = await start(server, subscribers_bytes=1 << 20, **LONG)
    stuck = await stuck_clients(edge, 2, b"t")
    client, sender = await edge.client(), await edge.client()
    await sender.publish(b"t", TEXT)
    await until(
        lambda: behind(edge) == 1
    )  # one stuck client has it, the other waits for room, as the client will
    await client.subscribe(b"1", b"t")
    await client.subscribe(b"2", b"other")
    await sender.publish(b"t", TEXT)
    await until(lambda: behind(edge) == 3)
    assert await client.ask(b"UNSUBSCRIBE 1\n") == b"OK\n"
    await sender.publish(b"other", b"short")
    assert await client.line() == b"MESSAGE 2 short\n"
    for one in stuck:
        one.close()


async def test_what_waits_for_those_served_from_the_log_is_counted(server: Server, start: Start) -> None:
    """docs/pubsub.md: beyond what all together may have waiting, each has 64 KiB at most, and the kernel's buffers."""
    edge = await start(server, subscribers_bytes=1 << 20)
    stuck = await stuck_clients(edge, 60, b"t")
    await publish(await edge.client(), 0, 5_000)
    await until(lambda: behind(edge) == len(stuck))
    waiting = sum(connection.backlog() for connection in edge.connections())
    assert waiting < (1 << 20) + 60 * (64 << 10), f"{waiting} octets wait"
    edge.service.backlogs.refresh()
    assert edge.service.backlogs.total == sum(connection.backlog() for connection in edge.connections())
