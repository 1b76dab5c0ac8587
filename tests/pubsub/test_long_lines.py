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
    pipe = edge.tools.open_domain(queue.domain).pipe
    await pipe.ready()
    body = b"y" * 300_000
    assert await AsyncClient(pipe).publish(queue, [records.encode(body)], "test") == []
    await sender.publish(b"t", b"short")
    assert await reader.lines(2) == [b"MESSAGE 1 " + body + b"\n", b"MESSAGE 2 short\n"]


async def test_who_reads_waits_for_nobody_who_does_not(server: Server, start: Start) -> None:
    """Many that read nothing came before, and each line alone is longer than all that may wait."""
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


async def test_it_goes_in_pieces_and_nothing_comes_between(server: Server, start: Start) -> None:
    """3.5: neither replies nor other messages; then they come, in their order, and what was asked meanwhile is done."""
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


async def test_what_is_unsubscribed_within_a_line_of_another_gets_nothing_after_its_ok(
    server: Server, start: Start
) -> None:
    """Though so many replies wait that requests wait, too, until the line has its end."""
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


async def test_a_client_that_quits_in_the_middle_gets_the_line_to_its_end(
    server: Server, start: Start
) -> None:
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


async def test_nothing_comes_behind_the_ok_to_quit(server: Server, start: Start) -> None:
    """2.2, 3.2: lines that wait, of which a turn sends several, come before it."""
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
    lines.remove(b"OK\n")  # of the PING
    assert end == b"OK\n"
    assert lines == [b"MESSAGE 1 %d %b\n" % (number, text) for number in range(40)]
    assert not edge.service.laggards.behind


async def test_a_line_whose_end_cannot_come_does_not_look_whole(
    server: Server, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3.1: what cannot be learnt is not answered; the connection is reset, although it has taken all so far."""
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
    behind = next(iter(edge.service.laggards.behind.values()))
    monkeypatch.setattr(behind, "may_go_on", lambda: False)  # the rest never comes
    connection = next(each for each in edge.connections() if each.unsent())
    client.read_on()
    await until(lambda: not connection.unsent())
    unanswered[0](OutcomeUnknown())
    with pytest.raises(ConnectionResetError):
        await client.reader.read()


async def test_a_late_line_that_was_begun_while_the_log_was_read_is_not_cut(
    server: Server, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3.5: two parts of one connection; one waits for the store when the other begins a line."""
    edge = await start(server, subscriber_bytes=64 << 10, **LONG)
    client, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    await client.subscribe(b"1", b"t")
    client.stop_reading()
    total = 12_000  # more than is recent
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


async def test_a_late_subscription_that_ends_in_the_middle_is_sent_to_the_end_of_its_line(
    server: Server, start: Start
) -> None:
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
    assert not edge.service.laggards.behind


async def test_long_identifiers_count_too(server: Server, start: Start) -> None:
    """A few kilobytes of SENDs may become very much for who has long identifiers."""
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
    return any(catch_up.is_within_a_line for catch_up in edge.service.laggards.behind.values())


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


async def test_a_client_that_quits_in_the_middle_and_reads_nothing_is_closed(
    server: Server, start: Start
) -> None:
    """What waits for it is little, but it is not kept for ever."""
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
        await until(lambda: not edge.service.laggards.behind)
    assert edge.refusals()["write_timeout"] == 2
