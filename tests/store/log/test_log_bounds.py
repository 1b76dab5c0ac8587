"""Bounds of an entry, a read and the whole log (pubsub.md 4.6)."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from services.store.log.log import START, Entry, LogSpec, Place
from services.store.log.tail import Tail
from services.store.model import records
from services.store.model.errors import StoreFull
from services.store.pipeline.encoding import LOG_ENTRY
from tests.servers import Server
from tests.store.desk import Desk, until
from tests.store.logbook import Logbook, arrived, block, check_numbering, logbook

ONE = (b"one", b"i1")
MIB = 1 << 20
Read = Callable[[Place], Awaitable[list[Entry]]]


@pytest.fixture
async def book(desk: Desk) -> AsyncIterator[Logbook]:
    async with logbook(desk, LogSpec(max_bytes=1 << 32)) as book:
        yield book


async def fill(book: Logbook, sizes: list[int], first: int = 1) -> list[bytes]:
    """Send entries of one line each; return them."""
    lines = [b"t %06d" % number + b"x" * size for number, size in enumerate(sizes, first)]
    items = [arrived(ONE, number, line) for number, line in enumerate(lines, first)]
    at = 0
    while at < len(items):
        end, octets = at, 0
        while end < len(items) and octets < 4 * MIB and end - at < 500:
            end, octets = end + 1, octets + len(items[end].block)
        await book.accept(*items[at:end])
        at = end
    return lines


async def readings(read: Read, place: Place, last: Place) -> list[list[Entry]]:
    """Return all entries from one place to another."""
    found = []
    while place < last:
        if entries := await read(place):
            found.append(entries)
            place = entries[-1].place
    return found


def lines_of(parts: list[list[Entry]]) -> list[bytes]:
    whole = b"".join(entry.block for part in parts for entry in part)
    return [line.removeprefix(b"SEND ") for line in whole.splitlines()]


def check_bounded(parts: list[list[Entry]]) -> None:
    """Check that each read returns at most 1 MiB, or one entry."""
    for part in parts:
        assert len(part) == 1 or sum(len(entry.block) for entry in part) <= MIB
        assert len(part) <= 1000


# readings


async def test_read_is_bounded(book: Logbook) -> None:
    """Check this for small and large entries, in both ways of reading."""
    sizes = [MIB] * 5 + [3] * 2500 + [MIB // 2 + 1] * 40 + [LOG_ENTRY] * 40 + [3] * 10
    lines = await fill(book, sizes)
    head = await book.head()
    tail = Tail(book.desk.store.connector, book.log.keys, 0)

    async def follow(place: Place) -> list[Entry]:
        tail.place = place
        return await tail.next()

    try:
        for read in (book.log.read, follow):
            parts = await readings(read, START, head)
            check_bounded(parts)
            check_numbering([entry for part in parts for entry in part])
            assert lines_of(parts) == lines
            assert len(parts) < 5 + 10 + 40 + 16, "small ones come many at a time"
    finally:
        await tail.close()


async def test_era_has_up_to_1_mib_of_lines(book: Logbook, desk: Desk) -> None:
    """Check that an era is bounded over all processes, and that ids grow and count messages."""
    async with desk.another() as other, logbook(other, book.log.spec) as there:
        for number in range(60):
            await (there if number % 2 else book).send(b"t " + b"x" * 60_000)
        await book.send(b"t " + b"x" * 3 * MIB)
        await there.send(b"t last")
    entries = await book.entries()
    check_numbering(entries)
    eras: dict[int, list[int]] = {}
    for entry in entries:
        eras.setdefault(entry.place.era, []).append(len(entry.block))
    first = min(eras)
    assert [len(sizes) for sizes in eras.values()] == [17, 17, 17, 9, 1, 1]
    assert list(eras) == list(range(first, first + 6)), "the clock has no part in it"
    assert entries[-1].place == await book.head()
    assert len({entry.origin for entry in entries}) == 1, "an era is no incarnation"


async def test_read_ends_at_its_limit_in_any_era(book: Logbook) -> None:
    await fill(book, [LOG_ENTRY] * 40)
    places = [START, *(entry.place for entry in await book.entries())]
    assert places[-1].era > places[1].era + 1
    for at in (0, 1, 14, 15, 16, 30, 39, 40):
        for end_at in (0, 1, 15, 16, 17, 31, 40):
            parts = await readings(
                lambda place, end=places[end_at]: book.log.read(place, end), places[at], places[end_at]
            )
            assert [entry.place for part in parts for entry in part] == places[at + 1 : end_at + 1]
            assert await book.log.read(max(places[at], places[end_at]), places[end_at]) == []


# entries


async def test_large_publishes_are_split_into_entries(
    book: Logbook, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check this for all that fits into an entry of the queue, even if escaping makes it longer (5.3)."""
    monkeypatch.setattr(records, "ENTRY_BYTES", MIB)  # as another version may pack
    queue = await book.publishing("orders", "out")
    bodies = [b"%03d" % number + b"x" * size for number, size in enumerate([10, 100_000, 5, 5, 9_000] * 6)]
    await desk.put(queue, *bodies)
    await desk.put(queue, *([b"\0" * 5_000] * 32))
    entries = await book.entries()
    assert await book.lines() == [*(b"out " + body for body in bodies), *([b"out " + rb"\x00" * 5_000] * 32)]
    assert all(len(entry.block) <= LOG_ENTRY or entry.messages == 1 for entry in entries)
    assert [entry.messages for entry in entries] == [1, 1, *([4, 1] * 5), 3, *([3] * 10), 2]
    state = await book.state()
    assert check_numbering(entries) == {b"%b %b" % (state.store, state.incarnation): 63}


async def test_large_replicated_batches_are_split_into_entries(book: Logbook) -> None:
    lines = [b"t %03d" % number + b"x" * 10_000 for number in range(30)]
    assert await book.accept(arrived(ONE, 7, *lines)) == (30, 0)
    entries = await book.entries()
    assert [entry.messages for entry in entries] == [6] * 5
    assert [entry.first for entry in entries] == [7, 13, 19, 25, 31]
    assert await book.lines() == lines
    assert (await book.state()).held[ONE].spans == ((7, 36),)
    assert await book.accept(arrived(ONE, 7, *lines)) == (0, 0)


# memory


def memory_of(server: Server, book: Logbook) -> int:
    """Return the memory of the stream by the server."""
    return int(server.call("MEMORY", "USAGE", book.log.keys.log[0], "SAMPLES", 0))


@pytest.mark.parametrize(("size", "messages"), [(2, 1), (30_000, 1), (5, 20), (50, 1_000)])
async def test_log_memory_is_close_to_its_estimate(
    book: Logbook, server: Server, size: int, messages: int
) -> None:
    number = 1
    while number < 400 * messages:
        items = []
        for _ in range(100):
            items.append(arrived(ONE, number, *([b"t " + b"x" * size] * messages)))
            number += messages
        await book.accept(*items)
    given = await book.counter("bytes")
    assert given * 0.7 < memory_of(server, book) < given * 1.1


async def test_many_small_messages_do_not_fill_the_store(own_server: Server) -> None:
    """Check that a growing log is trimmed before publishes are refused for lack of memory."""
    async with Desk(own_server) as desk, logbook(desk) as book:
        queue = await desk.queue()
        maxmemory = 12 << 20
        own_server.call("CONFIG", "SET", "maxmemory", maxmemory)
        for first in range(1, 60_000, 2_000):
            items = [arrived(ONE, number, b"a b") for number in range(first, first + 2_000)]
            assert await book.accept(*items) == (2_000, 0)
            await book.log.trim()
            assert memory_of(own_server, book) <= maxmemory // 4 * 1.1
        await book.send(b"a b")
        await desk.put(queue, b"x")
        assert memory_of(own_server, book) > maxmemory // 4 * 0.7, "and no more is trimmed than must be"
        assert block(b"a b") == (await book.entries())[0].block


async def test_newest_entry_stays_in_a_new_incarnation(desk: Desk) -> None:
    """Check that the newest entry stays when the head is in a new era, as after a restart."""
    async with logbook(desk, LogSpec(max_bytes=1 << 16)) as book:
        await book.send(b"t " + b"x" * 100_000)
        assert await book.log.trim() == 0
        await desk.domain.link.call("HSET", book.log.keys.log[1], "server", "another")
        incarnations = await book.counter("incarnations")
        await book.state()
        assert await book.counter("incarnations") == incarnations + 1
        assert await book.log.trim() == 0
        assert len(await book.entries()) == 1


async def test_newest_entry_is_trimmed_if_it_fills_the_store(server: Server, desk: Desk) -> None:
    """Check that the newest entry is trimmed if it fills the store (4.6)."""
    queue = await desk.queue()
    async with logbook(desk, LogSpec(max_bytes=1 << 32)) as book:
        await book.send(b"t " + b"x" * (12 * MIB))
        server.call("CONFIG", "SET", "maxmemory", 40 * MIB)
        try:
            while await desk.publish(queue, b"y" * 200_000) == []:  # until it is full
                continue
            await until(lambda: is_open_again(book))
        finally:
            server.call("CONFIG", "SET", "maxmemory", 0)


async def is_open_again(book: Logbook) -> bool:
    await book.log.trim()
    try:
        await book.send(b"t small")
    except StoreFull:
        return False
    return True


async def test_ids_of_lost_entries_are_not_reused(server: Server, desk: Desk) -> None:
    """Check that a follower which read lost entries misses no new entry after the data went back by some eras."""
    async with logbook(desk, LogSpec(max_bytes=1 << 32)) as book:
        figures = book.log.keys.log[1]
        await book.send(b"t first")
        server.call("HINCRBY", figures, "era", 3_600_000)  # the era began with a clock that was an hour ahead
        await book.send(b"t kept")
        copy = {key: server.call("DUMP", key) for key in book.log.keys.log}
        for _ in range(40):
            await book.send(b"t " + b"x" * 60_000)
        lost = {entry.place for entry in await book.entries()}
        tail = Tail(desk.store.connector, book.log.keys, 0)
        tail.place = max(lost)
        try:
            for key, dump in copy.items():
                server.call("DEL", key)
                if dump:
                    server.call("RESTORE", key, 0, dump)
            server.call("HSET", figures, "server", "another")
            await until(lambda: begun_anew(book))
            for number in range(50):
                await book.send(b"t new %d" % number)
            new = [entry for entry in await book.entries() if b"new" in entry.block]
            assert len(new) == 50
            assert not {entry.place for entry in new} & lost
            got: list[Entry] = []
            while len(got) < 50:
                got += await tail.next()
            assert got == new
        finally:
            await tail.close()


async def begun_anew(book: Logbook) -> bool:
    """Return whether a new incarnation has begun; the server's answer is cached for some milliseconds."""
    before = await book.counter("incarnations")
    await book.state()
    return before > 1 or await book.counter("incarnations") > before
