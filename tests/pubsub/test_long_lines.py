"""Lines that are longer than a turn, beside subscribers that do not read (pubsub.md 3.6)."""

from __future__ import annotations

import asyncio

import pytest

from services.pubsub.backlogs import PLENTY
from services.pubsub.catchup import PIECES
from services.store.log.log import Entry, Place
from services.store.model import records
from services.store.model.errors import OutcomeUnknown
from services.store.model.operations import Published
from services.store.pipeline.async_client import AsyncClient
from tests.live import until
from tests.pubsub.client import Client
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.slow import SMALL, LateAnswers, behind, publish
from tests.servers import Server

LONG = {"max_line_bytes": 4 << 20, "link": {"max_line_bytes": 8 << 20}}
IMPATIENT = {"text": {"port": 0, "write_timeout_s": 3.0}}
TEXT = b"y" * (3 << 20)


async def stuck_clients(edge: LiveEdge, number: int, tag: bytes) -> list[Client]:
    clients = [await edge.client(receive_buffer=SMALL) for _ in range(number)]
    for client in clients:
        await client.subscribe(b"1", tag)
        client.stop_reading()
    return clients


async def test_unread_output_does_not_keep_a_long_line_from_readers(server: Server, start: Start) -> None:
    """Check that unread output does not keep a long line from readers.

    The output of eighteen stuck clients reaches the limit; the line comes from a queue.
    """
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
    pipe = edge.tools.open_domain(queue.domain).pipe
    await pipe.ready()
    body = b"y" * 300_000
    assert await AsyncClient(pipe).publish(queue, [records.encode(body)], "test") == []
    await sender.publish(b"t", b"short")
    assert await reader.lines(2) == [b"MESSAGE 1 " + body + b"\n", b"MESSAGE 2 short\n"]


async def test_readers_do_not_wait_for_stuck_subscribers(server: Server, start: Start) -> None:
    """Check that readers do not wait for stuck subscribers.

    Many stuck ones came first, and each line is longer than the limit of all output.
    """
    edge = await start(server, subscribers_bytes=1 << 20, **LONG)
    stuck = await stuck_clients(edge, 8, b"t")
    readers = [await edge.client() for _ in range(4)]
    for reader in readers:
        await reader.subscribe(b"1", b"t")
    sender = await edge.client()
    for _ in range(4):
        await sender.publish(b"t", TEXT)
        for line in await asyncio.gather(*(reader.line() for reader in readers)):
            assert line == b"MESSAGE 1 " + TEXT + b"\n"
    waiting = sum(connection.backlog() for connection in edge.connections())
    assert waiting < len(stuck) * ((64 << 10) + len(TEXT) // PIECES)
    assert edge.value("penstock_subscriptions") == len(stuck) + len(readers)


async def test_nothing_is_written_between_pieces_of_a_line(server: Server, start: Start) -> None:
    """Check that nothing is written between pieces of a line, neither replies nor other messages (3.5).

    They follow in order, and requests made meanwhile are carried out.
    """
    edge = await start(server, subscribers_bytes=1 << 20, **LONG)
    client = await edge.client(receive_buffer=SMALL)
    for identifier in (b"1", b"2"):
        await client.subscribe(identifier, b"t")
    await client.subscribe(b"3", b"other")
    client.stop_reading()
    sender = await edge.client()
    await sender.publish(b"t", TEXT)
    await until(lambda: within_a_line(edge))
    await client.send(b"PING\nUNSUBSCRIBE 1\nSEND mine x\nSUBSCRIBE 4 t\nBAD\n")
    await sender.publish(b"other", b"short")
    await sender.publish(b"mine", b"x")
    client.read_on()
    assert await client.line() == b"MESSAGE 1 " + TEXT + b"\n"
    rest = [await client.line() for _ in range(7)]
    replies = [line for line in rest if not line.startswith(b"MESSAGE")]
    assert [line[:5] for line in replies] == [b"OK\n"] * 4 + [b"ERROR"]
    messages = [line for line in rest if line.startswith(b"MESSAGE")]
    assert messages == [b"MESSAGE 2 " + TEXT + b"\n", b"MESSAGE 3 short\n"]
    await sender.publish(b"t", b"end")
    assert {await client.line(), await client.line()} == {b"MESSAGE 2 end\n", b"MESSAGE 4 end\n"}
    await client.nothing_more()


async def test_unsubscribe_within_another_subscriptions_line_ends_delivery(
    server: Server, start: Start
) -> None:
    """Check that UNSUBSCRIBE within another subscription's line ends delivery.

    So many replies wait that requests wait, too, until the line is complete.
    """
    edge = await start(server, subscribers_bytes=1 << 20, **LONG)
    client = await edge.client(receive_buffer=SMALL)
    for identifier in (b"1", b"2"):
        await client.subscribe(identifier, b"t")
    client.stop_reading()
    sender = await edge.client()
    await sender.publish(b"t", TEXT)
    await until(lambda: within_a_line(edge))
    await client.send(b"PING\n" * 100 + b"UNSUBSCRIBE 2\nUNSUBSCRIBE 1\nPING\n")
    client.read_on()
    got = [await client.line()]
    while got.count(b"OK\n") < 103:
        got.append(await client.line())
    assert got[0] == b"MESSAGE 1 " + TEXT + b"\n"
    await sender.publish(b"t", b"not any more")
    await client.nothing_more()
    assert got[-1] == b"OK\n"
    assert edge.routed == 0


async def test_client_that_quits_within_a_line_gets_its_end(server: Server, start: Start) -> None:
    edge = await start(server, subscribers_bytes=1 << 20, **LONG)
    client = await edge.client(receive_buffer=SMALL)
    await client.subscribe(b"1", b"t")
    client.stop_reading()
    await (await edge.client()).publish(b"t", TEXT)
    await until(lambda: within_a_line(edge))
    await client.send(b"QUIT\n")
    client.read_on()
    assert await client.lines(2) == [b"MESSAGE 1 " + TEXT + b"\n", b"OK\n"]
    await client.closed()


async def test_nothing_follows_the_ok_to_quit(server: Server, start: Start) -> None:
    """Check that nothing follows the OK to QUIT: waiting lines, several per turn, come before it (2.2, 3.2)."""
    edge = await start(server, subscribers_bytes=1 << 20, **LONG)
    client, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    await client.subscribe(b"1", b"t")
    client.stop_reading()
    text = b"y" * 200_000
    for number in range(40):
        await sender.publish(b"t", b"%d " % number + text)
    got = b""
    while not within_a_line(edge):
        client.read_on()
        got += await client.reader.read(1 << 15)
        client.stop_reading()
        await asyncio.sleep(0.01)
    await client.send(b"PING\nQUIT\n")
    client.read_on()
    *lines, end = (got + await client.reader.read()).splitlines(keepends=True)
    lines.remove(b"OK\n")  # the reply to PING
    assert end == b"OK\n"
    assert lines == [b"MESSAGE 1 %d %b\n" % (number, text) for number in range(40)]
    assert not edge.service.slow_consumers.behind


async def test_incomplete_line_ends_with_a_reset(
    server: Server, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an incomplete line ends with a reset (3.1).

    An unknown outcome is not answered; the connection is reset, although the client has read all so far.
    """
    edge = await start(server, subscribers_bytes=1 << 20, **LONG)
    client = await edge.client(receive_buffer=SMALL)
    await client.subscribe(b"1", b"t")
    client.stop_reading()
    unanswered: list[Published] = []
    monkeypatch.setattr(edge.service.bridge, "send", lambda *arguments: unanswered.append(arguments[-1]))
    await client.send(b"SEND mine x\n")
    await until(lambda: unanswered)
    monkeypatch.undo()
    await (await edge.client()).publish(b"t", TEXT)
    await until(lambda: within_a_line(edge))
    behind = next(iter(edge.service.slow_consumers.behind.values()))
    monkeypatch.setattr(behind, "may_go_on", lambda: False)  # the rest never comes
    connection = next(each for each in edge.connections() if each.unsent())
    client.read_on()
    await until(lambda: not connection.unsent())
    unanswered[0](OutcomeUnknown())
    with pytest.raises(ConnectionResetError):
        await client.reader.read()


async def test_line_begun_during_a_read_is_not_interrupted(
    server: Server, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a line begun during a read is not interrupted (3.5).

    Of two parts of one connection, one waits for the store when the other begins a line.
    """
    edge = await start(server, subscriber_bytes=64 << 10, **LONG)
    client, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    await client.subscribe(b"1", b"t")
    client.stop_reading()
    total = 12_000  # more than the memory of recent entries
    await publish(sender, 0, total)
    answers, log = LateAnswers(edge), edge.service.log
    await client.send(b"SUBSCRIBE 2 u\n")
    await answers.given()
    await sender.publish(b"u", TEXT)
    read, asked, gate = log.read, asyncio.Event(), asyncio.Event()

    async def read_late(after: Place, until: Place | None = None) -> list[Entry]:
        entries = await read(after, until)
        asked.set()
        await gate.wait()
        return entries

    monkeypatch.setattr(log, "read", read_late)
    got = b""
    while not asked.is_set() or any(each.backlog() > PLENTY.room for each in edge.connections()):
        client.read_on()
        got += await client.reader.read(1 << 20)
        client.stop_reading()
        await asyncio.sleep(0)
    await answers.let_through()
    assert within_a_line(edge)
    gate.set()
    client.read_on()
    left = total + 2 - got.count(b"\n")
    got += b"".join([await client.reader.readline() for _ in range(left)])
    messages = got.split(b"\n")[:-1]
    messages.remove(b"OK")
    messages.remove(b"MESSAGE 2 " + TEXT)
    assert [int(line.split()[2]) for line in messages] == list(range(total))


async def test_late_subscription_that_ends_within_a_line_gets_its_end(server: Server, start: Start) -> None:
    edge = await start(server, subscribers_bytes=1 << 20, **LONG)
    answers = LateAnswers(edge)
    client, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    await client.send(b"SUBSCRIBE 1 t\n")
    await answers.given()
    await sender.publish(b"t", TEXT)
    client.stop_reading()
    await answers.let_through()
    await until(lambda: within_a_line(edge))
    await client.send(b"UNSUBSCRIBE 1\nPING\n")
    client.read_on()
    assert sorted(await client.lines(4)) == [b"MESSAGE 1 " + TEXT + b"\n", b"OK\n", b"OK\n", b"OK\n"]
    await sender.publish(b"t", b"not any more")
    await client.nothing_more()
    assert not edge.service.slow_consumers.behind


async def test_long_identifiers_count_towards_output(server: Server, start: Start) -> None:
    """Check that long identifiers count towards output, since few SENDs may become large output."""
    edge = await start(server)
    client, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    identifiers = [b"%d%b" % (number, b"0" * 60_000) for number in range(1, 6)]
    for identifier in identifiers:
        await client.subscribe(identifier, b"t")
    client.stop_reading()
    await sender.send(b"SEND t x\n" * 1000)
    assert await sender.lines(1000) == [b"OK\n"] * 1000
    await until(lambda: behind(edge) == 1)
    assert sum(connection.backlog() for connection in edge.connections()) < 1 << 20
    client.read_on()
    for _ in range(200):
        assert await client.lines(5) == [b"MESSAGE %b x\n" % identifier for identifier in identifiers]


def within_a_line(edge: LiveEdge) -> bool:
    return any(catch_up.is_within_a_line for catch_up in edge.service.slow_consumers.behind.values())


async def test_output_of_slow_consumers_is_bounded(server: Server, start: Start) -> None:
    """Check that output of slow consumers is bounded (docs/pubsub.md).

    Above the total limit, each has 64 KiB at most, and the kernel's buffers.
    """
    edge = await start(server, subscribers_bytes=1 << 20)
    stuck = await stuck_clients(edge, 60, b"t")
    await publish(await edge.client(), 0, 5_000)
    await until(lambda: behind(edge) == len(stuck))
    waiting = sum(connection.backlog() for connection in edge.connections())
    assert waiting < (1 << 20) + 60 * (64 << 10), f"{waiting} octets wait"
    edge.service.backlogs.refresh()
    assert edge.service.backlogs.total == sum(connection.backlog() for connection in edge.connections())


async def test_client_that_quits_within_a_line_and_does_not_read_is_closed(
    server: Server, start: Start
) -> None:
    """Check that a client that quits within a line and does not read is closed, although little output waits."""
    edge = await start(server, listeners=IMPATIENT, subscribers_bytes=1 << 20, **LONG)
    for goodbye in (b"QUIT\n", None):
        client = await edge.client(receive_buffer=SMALL)
        await client.subscribe(b"1", b"t")
        client.stop_reading()
        await (await edge.client()).publish(b"t", TEXT)
        await until(lambda: within_a_line(edge))
        if goodbye:
            await client.send(goodbye)
        else:
            client.writer.write_eof()
        await until(lambda: not edge.service.slow_consumers.behind)
    assert edge.refusals()["write_timeout"] == 2
