"""Subscribers that read slowly or not at all (pubsub.md 3.6)."""

from __future__ import annotations

import asyncio

from tests.live import until
from tests.pubsub.conftest import Start
from tests.pubsub.slow import SMALL, TIGHT, behind, numbers, publish
from tests.servers import Server


async def test_slow_subscriber_continues_from_its_place_and_catches_up(server: Server, start: Start) -> None:
    """Check that a slow subscriber continues from its own place and catches up.

    Nothing is lost, duplicated or reordered; the edge's memory is bounded, and others are not delayed.
    """
    edge = await start(server, **TIGHT)
    slow, quick, sender = await edge.client(receive_buffer=SMALL), await edge.client(), await edge.client()
    await slow.subscribe(b"1", b"t")
    await quick.subscribe(b"1", b"t")
    total = 8_000
    reading = asyncio.create_task(numbers(quick, total))
    slow.stop_reading()
    await publish(sender, 0, total)
    assert await reading == list(range(total))
    await until(lambda: behind(edge) == 1)
    held = max(connection.backlog() for connection in edge.connections())
    assert held < 5 << 20, f"{held} octets are held for one subscriber"
    slow.read_on()
    assert await numbers(slow, total) == list(range(total))
    await until(lambda: behind(edge) == 0)
    await publish(sender, total, 10)
    assert await numbers(slow, 10) == list(range(total, total + 10))


async def test_slow_subscriber_catches_up_while_messages_arrive(server: Server, start: Start) -> None:
    edge = await start(server, **TIGHT)
    slow, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    await slow.subscribe(b"1", b"t")
    slow.stop_reading()
    await publish(sender, 0, 8000)
    await until(lambda: behind(edge) == 1)
    slow.read_on()
    total = 16_000
    going_on = asyncio.create_task(publish(sender, 8000, total - 8000))
    assert await numbers(slow, total) == list(range(total))
    await going_on
    await until(lambda: behind(edge) == 0)


async def test_subscription_made_while_behind_counts_from_that_moment(server: Server, start: Start) -> None:
    """Check that a subscription made while behind counts from that moment (3.2, 3.6).

    The output limit is high enough that its requests are still read.
    """
    edge = await start(server, listeners={"text": {"port": 0, "write_buffer_bytes": 16 << 20}}, **TIGHT)
    slow, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    await slow.subscribe(b"1", b"t")
    await slow.subscribe(b"5", b"t*")
    slow.stop_reading()
    await publish(sender, 0, 6000)
    await until(lambda: behind(edge) == 1)
    await publish(sender, 6000, 10, b"other")
    await slow.send(b"SUBSCRIBE 2 o*\n")
    await until(lambda: edge.routed == 3)
    await slow.send(b"UNSUBSCRIBE 5\n")
    await publish(sender, 7000, 10, b"other")
    slow.read_on()
    lines = []
    while lines.count(b"OK\n") < 2 or not any(line.startswith(b"MESSAGE 2 7009 ") for line in lines[-20:]):
        lines.append(await slow.line())
    assert [int(each.split()[2]) for each in lines if each.startswith(b"MESSAGE 1 ")] == list(range(6000))
    assert [int(each.split()[2]) for each in lines if each.startswith(b"MESSAGE 2 ")] == list(
        range(7000, 7010)
    )
    fifth = [int(each.split()[2]) for each in lines if each.startswith(b"MESSAGE 5 ")]
    assert fifth == list(range(6000))  # all messages up to its UNSUBSCRIBE


async def test_subscriber_that_never_reads_costs_bounded_memory(server: Server, start: Start) -> None:
    """Check that a subscriber that never reads costs bounded memory.

    With very many matching subscriptions, a message of 10 KB would need 10 MB.
    """
    edge = await start(server, **TIGHT)
    hog, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    number = 1000
    await hog.send(b"".join(b"SUBSCRIBE %d t\n" % n for n in range(number)))
    assert await hog.lines(number) == [b"OK\n"] * number
    hog.stop_reading()
    await sender.send(b"SEND t %b\n" % (b"y" * 10_000) * 20)
    assert await sender.lines(20) == [b"OK\n"] * 20
    await until(lambda: behind(edge) == 1)
    assert max(connection.backlog() for connection in edge.connections()) < 5 << 20
    hog.read_on()
    for _ in range(20):
        expected = [b"MESSAGE %d " % n for n in range(number)]
        assert [line[: line.index(b"y")] for line in await hog.lines(number)] == expected


async def test_slow_consumer_gets_the_number_of_lost_messages(server: Server, start: Start) -> None:
    """Check that a subscriber overtaken by retention receives the number of lost messages (3.6).

    Messages still in the log are lost to it too, as its connection ends.
    """
    edge = await start(server, **TIGHT, log={"max_bytes": 2 << 20, "trim_s": 0.05})
    slow, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    await slow.subscribe(b"1", b"t")
    slow.stop_reading()
    total = 12_000
    await publish(sender, 0, total)

    async def is_trimmed() -> bool:
        figures = await edge.service.log.figures()
        return int(figures["bytes"]) <= 2 << 20 and int(figures["trimmed_messages"]) > 6000

    await until(is_trimmed)
    slow.read_on()
    seen = []
    while (line := await slow.line()).startswith(b"MESSAGE "):
        seen.append(int(line.split()[2]))
    assert seen == list(range(len(seen)))
    assert line == b"ERROR slow subscriber: %d messages lost\n" % (total - len(seen))
    await slow.closed()
    assert edge.refusals()["slow_subscriber"] == 1
    assert edge.value("penstock_subscriber_lost_messages_total") == total - len(seen)


async def test_subscriber_that_reads_nothing_is_closed(server: Server, start: Start) -> None:
    """Check that a client that reads nothing is closed, although its output is too small to pause its requests."""
    edge = await start(server, listeners={"text": {"port": 0, "write_timeout_s": 3.0}}, **TIGHT)
    slow, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    await slow.subscribe(b"1", b"t")
    slow.stop_reading()
    await publish(sender, 0, 8000)
    await until(lambda: behind(edge) == 1)
    await until(lambda: edge.refusals()["write_timeout"] == 1)
    await until(lambda: behind(edge) == 0)
    await sender.send(b"PING\n")
    assert await sender.line() == b"OK\n"


async def test_slow_reader_is_not_closed(server: Server, start: Start) -> None:
    edge = await start(server, listeners={"text": {"port": 0, "write_timeout_s": 1.0}}, **TIGHT)
    slow, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    await slow.subscribe(b"1", b"t")
    slow.stop_reading()
    await publish(sender, 0, 8000)
    for number in range(0, 8000, 400):
        slow.read_on()
        assert await numbers(slow, 400) == list(range(number, number + 400))
        slow.stop_reading()
        # the pace of this reader: each pause is shorter than the limit, all together are longer
        await asyncio.sleep(0.1)
    assert edge.refusals()["write_timeout"] == 0
