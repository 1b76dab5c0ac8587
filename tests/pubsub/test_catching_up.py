"""Cost of slow consumers for the store, this process and each other (pubsub.md 3.6)."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable

import pytest

from services.pubsub import read_cache, slow_consumers
from services.pubsub.read_cache import ReadCache
from services.store.log.log import START, Entry
from tests.live import until
from tests.pubsub.client import Client
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.slow import SMALL, TIGHT, behind, numbers, publish
from tests.pubsub.stores import store
from tests.servers import Server

NewServer = Callable[[], Server]
ROOMY = {"listeners": {"text": {"port": 0, "write_buffer_bytes": 64 << 20}}, **TIGHT}


def kept(edge: LiveEdge) -> ReadCache:
    return edge.service.slow_consumers.read_cache


def readings_so_far(server: Server) -> int:
    """Return how many times the log was read."""
    found = re.search(rb"cmdstat_xrange:calls=(\d+)", server.call("INFO", "commandstats"))
    return int(found[1]) if found else 0


@pytest.fixture
def _talkative(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, slow_consumers.__name__)


async def fallen_behind(edge: LiveEdge, number: int) -> list[Client]:
    """Return so many clients that have stopped reading."""
    clients = [await edge.client(receive_buffer=SMALL) for _ in range(number)]
    for client in clients:
        await client.subscribe(b"1", b"t")
        client.stop_reading()
    return clients


async def test_read_entries_are_used_before_more_are_read(server: Server, start: Start) -> None:
    """Check that read entries are used before more are read.

    A message that matches 50 subscriptions of a connection is much output; it is read once.
    """
    edge = await start(server, **ROOMY)
    many, sender = await edge.client(), await edge.client()
    await many.send(b"".join(b"SUBSCRIBE %d t\n" % n for n in range(50)))
    assert await many.lines(50) == [b"OK\n"] * 50
    many.stop_reading()
    total = 700
    await publish(sender, 0, total)
    await until(lambda: behind(edge) == 1)
    edge.service.recent_entries.clear()
    before = readings_so_far(server)
    many.read_on()
    for number in range(total):
        assert [int(line.split()[2]) for line in await many.lines(50)] == [number] * 50
    await until(lambda: behind(edge) == 0)
    # of 35 MB, 128 KiB at a time: 280 if each were read separately
    assert 1 <= readings_so_far(server) - before <= 30
    assert kept(edge).octets == 0


async def test_read_cache_is_bounded(server: Server, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the read cache is bounded.

    Consumers without room in the cache read again; all of them get all messages.
    """
    monkeypatch.setattr(read_cache, "KEPT_BYTES", 2 << 20)
    edge = await start(server, **TIGHT)
    clients, sender = await fallen_behind(edge, 8), await edge.client()
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, kept(edge).octets)
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    total = 8000
    await publish(sender, 0, total)
    assert behind(edge) == len(clients)
    edge.service.recent_entries.clear()
    for client in clients:
        client.read_on()
    read = await asyncio.gather(*(numbers(client, total) for client in clients))
    assert read == [list(range(total))] * len(clients)
    await until(lambda: behind(edge) == 0)
    assert kept(edge).octets == 0
    assert not watching.done()
    watching.cancel()
    assert 1 << 20 < most <= 2 << 20


async def test_message_larger_than_the_cache_is_read_once(
    server: Server, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a message larger than the cache is read once for very many subscriptions of a connection."""
    monkeypatch.setattr(read_cache, "KEPT_BYTES", 1 << 20)
    edge = await start(server, **ROOMY, max_line_bytes=4 << 20)
    many, sender = await edge.client(), await edge.client()
    await many.send(b"".join(b"SUBSCRIBE %d t\n" % n for n in range(20)))
    assert await many.lines(20) == [b"OK\n"] * 20
    many.stop_reading()
    text = b"y" * (3 << 19)
    await sender.publish(b"t", text)
    await until(lambda: behind(edge) == 1)
    edge.service.recent_entries.clear()
    before = readings_so_far(server)
    many.read_on()
    assert await many.lines(20) == [b"MESSAGE %d %b\n" % (n, text) for n in range(20)]
    # of 20; other load on the machine adds some
    assert readings_so_far(server) - before <= 15


async def damaged(edge: LiveEdge, server: Server, entry: Entry) -> Callable[[], None]:
    """Overwrite an entry of the log; return a function that repairs it."""
    stream = edge.service.log.keys.log[0]
    rows = server.call("XRANGE", stream, "-", "+")

    def write(bad: bytes) -> None:
        server.call("DEL", stream)
        for key, fields in rows:
            server.call("XADD", stream, key, *([b"what", b"is this"] if key == bad else fields))

    write(str(entry.place).encode())
    return lambda: write(b"")


@pytest.mark.usefixtures("_talkative")
async def test_unreadable_entry_delays_only_its_consumer(server: Server, start: Start) -> None:
    """Check that an unreadable entry delays only its consumer, which continues once it can be read."""
    edge = await start(server, **TIGHT)
    first, sender = (await fallen_behind(edge, 1))[0], await edge.client()
    second = await edge.client(receive_buffer=SMALL)
    await publish(sender, 0, 4000)
    await until(lambda: behind(edge) == 1)
    middle = edge.service.fanout.place
    assert middle is not None
    await second.subscribe(b"1", b"t")
    second.stop_reading()
    await publish(sender, 4000, 4000)
    assert behind(edge) == 2
    (entry,) = [each for each in await whole_log(edge) if each.place == middle]
    repair = await damaged(edge, server, entry)
    edge.service.recent_entries.clear()
    first.read_on()
    await until(lambda: edge.log.events("log_unread"))
    second.read_on()
    assert await numbers(second, 4000) == list(range(4000, 8000))
    repair()
    assert await numbers(first, 8000) == list(range(8000))


async def whole_log(edge: LiveEdge) -> list[Entry]:
    found: list[Entry] = []
    while more := await edge.service.log.read(found[-1].place if found else START):
        found += more
    return found


@pytest.mark.usefixtures("_talkative")
async def test_unavailable_store_is_polled_once_for_all_consumers(
    new_server: NewServer, start: Start
) -> None:
    """Check that an unavailable store is polled once for all consumers, and all continue when it is back."""
    server = await store(new_server)
    edge = await start(server, **TIGHT)
    clients, sender = await fallen_behind(edge, 5), await edge.client()
    await publish(sender, 0, 3000)
    assert behind(edge) == len(clients)
    server.kill9()
    edge.service.recent_entries.clear()
    loop = asyncio.get_running_loop()
    began, asked = loop.time(), len(edge.log.events("log_unread"))
    for client in clients:
        client.read_on()
    await until(lambda: len(edge.log.events("log_unread")) >= asked + 4)
    assert loop.time() - began > 2 * slow_consumers.AGAIN_S
    server.restart()
    for client in clients:
        assert await numbers(client, 3000) == list(range(3000))
