"""Ends of subscriptions: messages that the log held at that moment are delivered first (pubsub.md 3.2)."""

from __future__ import annotations

import asyncio

import pytest

from tests.live import until
from tests.pubsub.cable import Cable
from tests.pubsub.client import Client
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.slow import SMALL, TIGHT, behind, publish
from tests.pubsub.test_log_outages import blind
from tests.servers import Server

ENDS = {"UNSUBSCRIBE": b"UNSUBSCRIBE 1\nPING\nQUIT\n", "QUIT": b"QUIT\n", "FIN": b""}
every_end = pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)


async def leaves(client: Client, end: bytes, before: bytes = b"") -> list[bytes]:
    """Send `before` and `end`, or a FIN; return all output until the connection closes."""
    await client.send(before + end)
    if not end:
        client.half_close()
    return [line async for line in client.reader]


def messages(lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if line.startswith(b"MESSAGE ")]


@every_end
async def test_own_messages_in_the_same_input_are_delivered_before_the_end(
    edge: LiveEdge, end: bytes
) -> None:
    client = await edge.client()
    await client.subscribe(b"1", b"us")
    lines = await leaves(client, end, b"".join(b"SEND us %d\n" % n for n in range(100)))
    assert messages(lines) == [b"MESSAGE 1 %d\n" % n for n in range(100)]
    if end:
        assert lines[-1] == b"OK\n"
    assert edge.routed == 0


@every_end
async def test_end_waits_until_the_log_is_followed_again(server: Server, start: Start, end: bytes) -> None:
    async with Cable(server.port) as cable:
        near, far = await start(cable), await start(server)
        client, sender = await near.client(), await far.client()
        await client.subscribe(b"1", b"t")
        await blind(cable, server, near)
        await publish(sender, 0, 50)
        leaving = asyncio.ensure_future(leaves(client, end))
        await sender.nothing_more()
        assert not leaving.done()
        cable.plug_in()
        assert len(messages(await leaving)) == 50


@every_end
async def test_slow_subscriber_is_served_up_to_its_end(server: Server, start: Start, end: bytes) -> None:
    """Check that a slow subscriber is served up to its end (3.6)."""
    edge = await start(server, **TIGHT)
    slow, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    await slow.subscribe(b"1", b"t")
    slow.stop_reading()
    await publish(sender, 0, 8000)
    await until(lambda: behind(edge) == 1)
    await slow.send(end)
    if not end:
        slow.half_close()
    slow.read_on()
    assert len(messages([line async for line in slow.reader])) == 8000
    await until(lambda: edge.routed == 0)


async def test_nothing_is_delivered_after_the_end(edge: LiveEdge) -> None:
    """Check that nothing is delivered after the end, while another client sends continuously."""
    client, sender = await edge.client(), await edge.client()
    for turn in range(20):
        await client.subscribe(b"1", b"t")
        await sender.send(b"".join(b"SEND t %d\n" % n for n in range(200)))
        await client.send(b"UNSUBSCRIBE 1\nPING\n")
        lines = [await client.line()]
        while lines[-1] != b"OK\n":
            lines.append(await client.line())
        assert lines[:-1] == [b"MESSAGE 1 %d\n" % n for n in range(len(lines) - 1)], turn
        assert await client.line() == b"OK\n"
        assert await sender.lines(200) == [b"OK\n"] * 200
