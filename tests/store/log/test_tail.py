"""Tails: each entry once, in order, when it is durable (docs/store.md; pubsub.md 3.2, 4.2)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.store import PipeSettings
from services.store.log import replica as replica_module
from services.store.log import tail as tail_module
from services.store.log.log import START, Entry, LogSpec
from services.store.log.tail import Tail
from services.store.model.errors import DatasetLost, NotInitialised, OutcomeUnknown, StoreUnavailable
from services.store.model.keys import DomainKeys
from services.store.redis.connect import Connector
from tests.proxy import Proxy
from tests.servers import Server, eventually
from tests.store.desk import Desk, numbered, until
from tests.store.logbook import Logbook, arrived, check_numbering, logbook
from tests.stores import every_server

PATIENT = PipeSettings(patience_s=20.0)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the wait for entries."""
    monkeypatch.setattr(tail_module, "BLOCK_MS", 50)


@pytest.fixture
def _soon_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_module, "REPLY_TIMEOUT_S", 1.0)


@pytest.fixture
async def tail(book: Logbook) -> AsyncIterator[Tail]:
    """Open a tail at the end of the log."""
    await book.send(b"t before")
    tail = Tail(book.desk.store.connector, book.log.keys, 0)
    assert await tail.next() == []
    yield tail
    await tail.close()


async def next_of(tail: Tail) -> list[Entry]:
    """Return the next entries, retrying after faults."""
    found: list[list[Entry]] = []

    async def asked() -> bool:
        try:
            found.append(await tail.next())
        except StoreUnavailable:
            return False
        return True

    await until(asked)
    return found[0]


async def all_of(tail: Tail, last: bytes) -> list[Entry]:
    """Return everything up to an entry that ends with this text."""
    found: list[Entry] = []
    while not (found and found[-1].block.endswith(last + b"\n")):
        found += await next_of(tail)
    return found


async def test_tail_begins_at_the_end(book: Logbook, tail: Tail) -> None:
    """Check that a tail begins at the end of the log (pubsub.md 3.2)."""
    assert tail.place == await book.head()
    await book.send(b"t 1")
    assert [e.block for e in await tail.next()] == [b"SEND t 1\n"]
    assert tail.place == await book.head()


async def test_tail_of_an_empty_log_misses_nothing(book: Logbook) -> None:
    tail = Tail(book.desk.store.connector, book.log.keys, 0)
    assert await tail.next() == []
    assert tail.place == START
    await book.send(b"t 1")
    assert await tail.next() == await book.entries()
    await tail.close()


@pytest.fixture
def _patient(tail: Tail, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tail wait for long."""
    monkeypatch.setattr(tail_module, "BLOCK_MS", 20_000)
    monkeypatch.setattr(tail_module, "REPLY_TIMEOUT_S", 30.0)


@pytest.mark.usefixtures("_patient")
async def test_tail_returns_new_entries_at_once(book: Logbook, tail: Tail) -> None:
    waiting = asyncio.create_task(tail.next())
    await until(lambda: blocked(book))
    await book.send(b"t 1", b"t 2")
    assert [e.messages for e in await waiting] == [2]


async def blocked(book: Logbook) -> bool:
    info = await book.desk.domain.link.call("INFO", "clients")
    return b"blocked_clients:1" in info


@every_server
async def test_tail_returns_every_entry_once(book: Logbook, tail: Tail) -> None:
    """Check this for entries of one line and of a megabyte."""
    for size in (10, 10, 400_000, 400_000, 2_000_000, 10, 10):
        await book.send(b"t " + b"x" * size)
    await asyncio.gather(*(book.sending(b"t " + body) for body in numbered(100)))
    for _ in range(30):
        await book.send(b"t y")
    await book.send(b"t last")
    found = await all_of(tail, b"last")
    assert found == (await book.entries())[1:]
    check_numbering(found, 1)


async def test_tail_reads_1_mib_at_most(book: Logbook, tail: Tail) -> None:
    """Check this also while the tail waits: it reads one entry of any length, then further ones."""
    before = await book.head()
    for size in (10, 200_000):
        for number in range(30):
            await book.send(b"t %d " % number + b"x" * size)
    found, numbers = [], []
    while not found or found[-1].place < await book.head():
        part = await next_of(tail)
        numbers.append(len(part))
        found += part
    assert numbers == [1, 34, *([1, 4] * 5)]
    assert found == await book.entries(before)


async def test_tail_continues_after_a_kill(own_server: Server) -> None:
    """Check that no entry is repeated or missing after restarts and lost connections."""
    async with Desk(own_server, pipe=PATIENT) as desk, logbook(desk) as book:
        tail = Tail(desk.store.connector, book.log.keys, 0)
        assert await tail.next() == []
        following = asyncio.create_task(all_of(tail, b"last"))
        for round_ in range(3):
            for number in range(30):
                await book.send(b"t %d.%d" % (round_, number))
            own_server.kill9()
            own_server.restart()
            await book.send(b"t again")
            own_server.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await book.send(b"t last")
        found = await following
        assert found == await book.entries()
        check_numbering(found)
        await tail.close()


async def test_lost_replies_are_read_again(own_server: Server) -> None:
    async with Proxy(own_server.port) as proxy, Desk(own_server) as desk, logbook(desk) as book:
        tail = Tail(Connector(proxy.url), book.log.keys, 0)
        assert await tail.next() == []
        for number in range(3):
            await book.send(b"t %d" % number)
            proxy.lose_replies_to = b"log:s"  # read in two ways
            with pytest.raises(StoreUnavailable):
                await tail.next()
            proxy.lose_replies_to = b""
            assert [e.block for e in await tail.next()] == [b"SEND t %d\n" % number]
        await tail.close()


@pytest.mark.usefixtures("_soon_given_up")
async def test_silent_server_is_disconnected(own_server: Server) -> None:
    async with Desk(own_server) as desk, logbook(desk) as book:
        tail = Tail(desk.store.connector, book.log.keys, 0)
        assert await tail.next() == []
        await book.send(b"t 1")
        own_server.stop()
        try:
            with pytest.raises(StoreUnavailable, match="does not answer"):
                await tail.next()
        finally:
            own_server.cont()
        assert [e.block for e in await next_of(tail)] == [b"SEND t 1\n"]
        await tail.close()


@pytest.mark.usefixtures("_patient")
async def test_cancelled_read_loses_nothing(book: Logbook, tail: Tail) -> None:
    for number in range(5):
        waiting = asyncio.create_task(tail.next())
        await until(lambda: blocked(book))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await book.send(b"t %d" % number)
        assert [e.block for e in await tail.next()] == [b"SEND t %d\n" % number]


async def test_emptied_store_raises_dataset_lost(book: Logbook, tail: Tail, server: Server) -> None:
    """Check that a tail of an emptied store raises DatasetLost instead of waiting for ever."""
    await book.send(b"t 1")
    assert len(await tail.next()) == 1
    server.call("FLUSHALL", "SYNC")
    for _ in range(2):
        with pytest.raises(DatasetLost):
            await tail.next()


async def test_store_that_is_not_set_up_raises_not_initialised(server: Server) -> None:
    tail = Tail(Connector(server.url), DomainKeys("main"), 0)
    with pytest.raises(NotInitialised):
        await tail.next()
    await tail.close()


async def test_trimmed_entries_show_as_a_gap(book: Logbook, tail: Tail) -> None:
    """Check that the difference of serials is the number of missed messages (pubsub.md 3.6)."""
    for number in range(10):
        await book.send(b"t %d" % number, b"u %d" % number)
    before = tail.place
    book.log.spec = LogSpec(max_bytes=120)  # an entry
    await book.log.declare()
    lost = await book.log.trim() - 1  # one of them was there before
    found = await tail.next()
    assert before is not None
    assert found[0].place.serial - found[0].messages - before.serial == lost > 10
    assert found[-1].block == b"SEND t 9\nSEND u 9\n"


# replicas


def follows(primary: Server) -> bool:
    """Wait until the replica has everything."""
    with primary.client() as client:
        client.call("SET", "written", "now")
        return bool(client.call("WAIT", 1, 100))


@pytest.fixture
def pair(server_program: str, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Start a primary and its replica."""
    options = {"repl-diskless-sync-delay": "0", "repl-timeout": "60"}
    primary, replica = (Server(server_program, tmp_path / name, options) for name in ("primary", "replica"))
    try:
        primary.start()
        replica.start().call("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: follows(primary))
        yield primary, replica
    finally:
        primary.end()
        replica.end()


@pytest.mark.usefixtures("_soon_given_up")
async def test_unreplicated_entries_are_not_returned(pair: tuple[Server, Server]) -> None:
    """Check that only replicated entries are delivered (pubsub.md 3.2)."""
    primary, replica = pair
    quick = PipeSettings(request_timeout_s=1.5)
    async with Desk(primary, pipe=quick) as desk, logbook(desk, LogSpec("replicated:1")) as book:
        tail = Tail(desk.store.connector, book.log.keys, 1)
        assert await tail.next() == []
        await book.send(b"t 1")
        assert [e.block for e in await next_of(tail)] == [b"SEND t 1\n"]
        replica.stop()
        try:
            with pytest.raises(OutcomeUnknown):
                await book.send(b"t 2")
            assert await book.lines() == [b"t 1", b"t 2"]  # it is in the log
            with pytest.raises(StoreUnavailable):
                await tail.next()
        finally:
            replica.cont()
        assert [e.block for e in await next_of(tail)] == [b"SEND t 2\n"]
        await tail.close()


async def test_link_state_is_replicated(pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the baseline is replicated before the first entry is requested (pubsub.md 4.3)."""
    monkeypatch.setattr(replica_module, "WAIT_MS", 500)
    primary, replica = pair
    item = arrived((b"n1", b"i"), 1, b"t 1")
    async with Desk(primary) as desk, logbook(desk, LogSpec("replicated:1")) as book:
        assert await book.replica.baseline(b"n1", {}) == {}
        replica.stop()
        try:
            for _ in range(2):
                with pytest.raises(OutcomeUnknown):
                    await book.accept(item)
            for _ in range(2):
                with pytest.raises(OutcomeUnknown):
                    await book.replica.baseline(b"n2", {})
                await desk.domain.link.close()  # the next one is on another connection
        finally:
            replica.cont()
        monkeypatch.undo()
        assert await book.replica.baseline(b"n2", {}) == {}
        assert await book.accept(item) == (0, 0)
        assert await book.lines() == [b"t 1"]
