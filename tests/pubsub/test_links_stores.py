"""Links of stores that lose their server, recent data or oldest messages (pubsub.md 4.4-4.6)."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import cast

from services.store.log.replica import Replica
from services.store.model.intervals import Intervals
from tests.live import until
from tests.pubsub.cable import Cable
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import (
    Neighbour,
    NewServer,
    figure,
    held,
    hold_the_same,
    linked,
    messages,
    messages_in,
    numbered,
    send_all,
    store,
    unlinked,
)
from tests.servers import Server

SMALL_LOG = {"max_bytes": 1 << 16, "trim_s": 0.02}
SOCKETS = shutil.ignore_patterns("*.sock")
PROBE = b"is it there?"
KIB = b"x" * 1000


def restore(server: Server, copy: Path) -> None:
    """Replace its data with an older copy."""
    server.kill9()
    shutil.rmtree(server.directory)
    shutil.copytree(copy, server.directory)
    server.restart()


def copy_of(server: Server, folder: Path) -> Path:
    """Return a copy of its data, taken while it is stopped."""
    server.kill9()
    copy = Path(shutil.copytree(server.directory, folder / "copy", ignore=SOCKETS))
    server.restart()
    return copy


async def counted_as_gaps(edge: LiveEdge, number: int) -> None:
    """Wait until the gaps are counted: the store knows a moment before its edge does."""
    await until(lambda: edge.value("penstock_link_gaps_total") == number)


async def stores_again(edge: LiveEdge) -> None:
    """Reconnect; an edge that detects the loss of acknowledged messages closes clients without an answer (3.1)."""

    async def stores() -> bool:
        return await (await edge.client()).ask(b"SEND t %b\n" % PROBE) == b"OK\n"

    await until(stores)


async def is_back(*edges: LiveEdge) -> None:
    """Wait until the edges follow their logs and each other again."""
    for edge in edges:
        await until(edge.is_ready)
        await linked(edge)


async def test_restored_store_loses_nothing(new_server: NewServer, start: Start, tmp_path: Path) -> None:
    """Check that a restored store loses nothing (4.4).

    Its new messages are new to its neighbours, and it recovers lost ones from them.
    """
    one, server = await start(await store(new_server)), await store(new_server)
    two = await start(server, neighbours=[one.link_address])
    await is_back(one, two)
    await send_all(await one.client(), b"t", numbered("one before ", 10))
    await send_all(await two.client(), b"t", numbered("two before ", 10))
    await hold_the_same(one, two)
    copy = await asyncio.to_thread(copy_of, server, tmp_path)
    await is_back(one, two)
    await send_all(await one.client(), b"t", numbered("one lost ", 10))
    await send_all(await two.client(), b"t", numbered("two lost ", 10))
    await hold_the_same(one, two)
    await asyncio.to_thread(restore, server, copy)
    await until(two.is_ready)
    await stores_again(two)
    await send_all(await two.client(), b"t", numbered("two after ", 10))
    await send_all(await one.client(), b"t", numbered("one after ", 10))
    same = await hold_the_same(one, two)
    expected = [f"{who} {when} " for who in ("one", "two") for when in ("before", "lost", "after")]
    everything = sorted(message for prefix in expected for message in numbered(prefix, 10))
    assert sorted(await messages(one)) == sorted(await messages(two))
    assert sorted(message for message in await messages(one) if message != PROBE) == everything
    assert messages_in(same) == len(await messages(one))
    assert len(same) >= 4  # those of one, and of two before the copy, after it, and after the restore
    assert await figure(one, "gaps") == await figure(two, "gaps") == 0


async def test_edge_detects_a_restore_that_it_did_not_see(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """Check that an edge detects a restore that it did not see (4.4).

    Nothing is sent at the restored store, and its link never broke.
    """
    one, server = await start(await store(new_server)), await store(new_server)
    two = await start(server, neighbours=[one.link_address])
    await is_back(one, two)
    copy = await asyncio.to_thread(copy_of, server, tmp_path)
    await is_back(one, two)
    await send_all(await one.client(), b"t", numbered("lost ", 100))
    await hold_the_same(one, two)
    await asyncio.to_thread(restore, server, copy)
    await until(two.is_ready)
    await hold_the_same(one, two, number=100)
    assert await messages(two) == numbered("lost ", 100)


async def test_killed_store_server_under_a_link(new_server: NewServer, start: Start) -> None:
    """Check that killing either store server while messages pass both ways loses and duplicates none (4.3)."""
    servers = [await store(new_server), await store(new_server)]
    one = await start(servers[0])
    two = await start(servers[1], neighbours=[one.link_address])
    await is_back(one, two)
    sent: list[bytes] = []
    for step in range(2):
        for edge, name in ((one, "one"), (two, "two")):
            more = numbered(f"{name} {step} ", 500)
            await send_all(await edge.client(), b"t", more)
            sent += more
        server = servers[step % 2]
        await asyncio.to_thread(server.kill9)  # while the last of them are under way
        await asyncio.to_thread(server.restart)
        await until(one.is_ready)
        await until(two.is_ready)
    await hold_the_same(one, two)
    assert sorted(await messages(one)) == sorted(await messages(two)) == sorted(sent)
    for edge in (one, two):
        found = await messages(edge)
        for who in (b"one", b"two"):
            assert [m for m in found if m.startswith(who)] == [m for m in sent if m.startswith(who)]


async def test_trimmed_messages_are_reported_as_a_gap(new_server: NewServer, start: Start) -> None:
    """Check that trimmed messages are reported as a gap, here and at the neighbour's neighbour (4.5)."""
    one = await start(await store(new_server), log=SMALL_LOG)
    async with Cable(one.places["link"][1]) as cable:
        two = await start(await store(new_server), neighbours=[cable.address])
        three = await start(await store(new_server), neighbours=[two.link_address])
        await linked(two, 2)
        await linked(three)
        cable.pull_out()
        await unlinked(one)
        writer = await one.client()
        for i in range(300):  # one by one: an entry larger than the log's limit is trimmed at once
            await writer.publish(b"t", b"%d %b" % (i, KIB))

        async def is_trimmed() -> bool:
            return len(await messages(one)) < 100

        await until(is_trimmed)
        one.service.recent_entries.clear()  # messages still in memory would be sent from there
        cable.plug_in()
        await hold_the_same(one, two, three)
    kept = await messages(two)
    assert kept == await messages(three) == [b"%d %b" % (i, KIB) for i in range(300 - len(kept), 300)]
    assert 0 < len(kept) < 100
    for edge in (two, three):
        await counted_as_gaps(edge, 300 - len(kept))
        assert await figure(edge, "gaps") == 300 - len(kept)
    shown = two.log.events("link_gap")
    assert "messages are missing here: the neighbour has trimmed them" in shown[0].getMessage()


async def test_trimmed_messages_in_memory_are_sent(new_server: NewServer, start: Start) -> None:
    """Check that trimmed messages in memory are sent and not reported as trimmed (4.5)."""
    edge = await start(await store(new_server), log=SMALL_LOG)
    writer = await edge.client()
    await writer.publish(b"t", b"1")
    replica = Replica(edge.service.log)
    head = str((await replica.state()).head).encode()
    await send_all(writer, b"t", [b"%d %b" % (i, KIB) for i in range(2, 201)])

    async def is_trimmed() -> bool:
        return any((await replica.state()).gone.values())

    await until(is_trimmed)
    neighbour = await Neighbour.meet(edge)
    await neighbour.follow(position=head)
    assert (await neighbour.hear(b"GAP")).endswith(b" 1 1")  # is before the place
    for number in range(2, 201):
        assert (await neighbour.hear(b"ENTRY")).split(b" ")[3] == b"%d" % number


async def until_messages(edge: LiveEdge, wanted: list[bytes]) -> None:
    async def has() -> bool:
        return await messages(edge) == wanted

    await until(has)


async def test_gaps_are_forwarded(new_server: NewServer, start: Start) -> None:
    """Check that gaps are forwarded over standing links, and each store counts them (4.5)."""
    one = await start(await store(new_server))
    two = await start(await store(new_server), neighbours=[one.link_address])
    await linked(one)
    await linked(two)
    source = await Neighbour.meet(one)
    await source.entry(1, b"t", b"first")
    await source.say(b"GAP other inc1 2 40")
    await source.entry(41, b"t", b"last")
    await hold_the_same(one, two, number=41)
    assert (await held(two))[b"other", b"inc1"] == Intervals.of([(1, 1), (41, 41)])
    await counted_as_gaps(one, 39)
    await counted_as_gaps(two, 39)
    assert await messages(two) == [b"first", b"last"]
    await source.entry(7, b"t", b"found")  # another neighbour had it
    await source.entry(42, b"t", b"next")
    await hold_the_same(one, two, number=42)
    await until_messages(two, [b"first", b"last", b"found", b"next"])
    sink = await Neighbour.meet(two, b"sink")  # and to later neighbours
    await sink.follow()
    assert await sink.hear(b"GAP") == b"GAP other inc1 2 6"
    assert await sink.hear(b"GAP") == b"GAP other inc1 8 40"


async def test_messages_trimmed_before_sending_are_a_gap(new_server: NewServer, start: Start) -> None:
    """Check that messages trimmed before sending are a gap, and the rest of the log follows (4.5)."""
    edge = await start(await store(new_server), log=SMALL_LOG)
    neighbour = await Neighbour.meet(edge, receive_buffer=4096)
    await neighbour.follow()
    await until(lambda: edge.value("penstock_links_serving") == 1)
    transport = cast(asyncio.Transport, neighbour.client.writer.transport)
    transport.pause_reading()
    sent = 12_000  # more than the kernel and the edge hold for a neighbour that does not read
    client = await edge.client()
    for first in range(0, sent, 1000):
        await send_all(client, b"t", [b"%d %b" % (i, KIB) for i in range(first, first + 1000)])
        await neighbour.say(b"BEAT")  # slow, but alive
    assert edge.connections("link")[0].backlog() < 1 << 20  # the rest waits in the log
    transport.resume_reading()
    numbers: list[range] = []
    while not numbers or sum(map(len, numbers)) < sent:
        line = await neighbour.client.line()
        assert line, "the edge has closed the link"
        words = line.split(b" ")
        if words[0] == b"ENTRY":
            numbers.append(range(int(words[3]), int(words[3]) + 1))
        elif words[0] == b"GAP":
            numbers.append(range(int(words[3]), int(words[4]) + 1))
        await neighbour.say(b"BEAT")
    received = sorted(number for part in numbers for number in part)
    assert received == list(range(1, sent + 1))
    assert any(len(part) > 1 for part in numbers)
