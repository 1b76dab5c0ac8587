"""Trimming: no more than needed, with an exact record of the trimmed numbers (pubsub.md 4.5, 4.6)."""

import random

import pytest

from services.store.log.log import Entry, LogSpec, Place
from services.store.log.replica import Gap, Held
from services.store.model.intervals import Intervals
from tests.servers import Server
from tests.store.desk import until
from tests.store.logbook import Logbook, arrived, block, check_places, own, weight

ONE, TWO = (b"one", b"i1"), (b"two", b"i1")
LINE = b"t %04d"
SIZE = weight(Entry(Place(1, 1), 1, b" ".join(ONE), 1, False, block(LINE % 0)))


async def keep(book: Logbook, **spec: int) -> int:
    """Trim to these bounds; return the number of trimmed messages."""
    book.log.spec = LogSpec(**spec)
    await book.log.declare()
    gone = await book.log.trim()
    await check(book)
    return gone


async def forget(book: Logbook) -> None:
    """Trim everything by age."""
    book.log.spec = LogSpec(retention_ms=1)
    await book.log.declare()

    async def is_empty() -> bool:
        await book.log.trim()
        return not await book.entries()

    await until(is_empty)
    book.log.spec = LogSpec()
    await book.log.declare()
    await check(book)


async def there(book: Logbook) -> Held:
    """Return the numbers in the stream by origin."""
    found: Held = {}
    for entry in await book.entries():
        store, _, incarnation = entry.origin.partition(b" ")
        last = entry.first + entry.messages - 1
        found[store, incarnation] = found.get((store, incarnation), Intervals()).add(entry.first, last)
    return found


async def check(book: Logbook) -> None:
    """Check that each held number is in the stream or gone, and that octets and places are right."""
    state, present = await book.state(), await there(book)
    entries = await book.entries()
    lost = gaps = 0
    for origin in state.held | state.gone:
        held, gone = state.held.get(origin, Intervals()), state.gone.get(origin, Intervals())
        trimmed = held.minus(present.get(origin, Intervals()))
        assert gone.minus(gone.minus(held)) == trimmed
        lost, gaps = lost + trimmed.total(), gaps + gone.minus(held).total()
    assert await book.counter("gaps") == gaps
    assert await book.counter("bytes") == sum(map(weight, entries))
    assert await book.counter("trimmed_messages") == state.trimmed.serial == lost
    check_places(entries, state.trimmed.serial)
    assert all(state.trimmed < entry.place <= state.head for entry in entries)


async def fill(book: Logbook, count: int) -> None:
    """Send entries of one line each in one call."""
    await book.accept(*(arrived(ONE, number, LINE % number) for number in range(1, count + 1)))


@pytest.mark.parametrize(("room", "left"), [(100, 10), (10, 10), (9, 9), (1, 1), (0, 1)])
async def test_trim_by_octets(book: Logbook, room: int, left: int) -> None:
    await fill(book, 10)
    assert await keep(book, max_bytes=room * SIZE) == 10 - left
    assert await book.lines() == [LINE % number for number in range(11 - left, 11)]
    assert await keep(book, max_bytes=room * SIZE) == 0


async def test_trim_removes_no_more_than_needed(book: Logbook) -> None:
    """Check that whole entries are trimmed, the oldest first, no more than needed, and never the newest."""
    await fill(book, 10)
    assert await keep(book, max_bytes=5 * SIZE + SIZE - 1) == 5
    assert await keep(book, max_bytes=5 * SIZE - 1) == 1


async def test_trim_by_age(book: Logbook) -> None:
    await fill(book, 5)
    begun = await book.desk.store.now_ms()

    async def older() -> bool:
        return await book.desk.store.now_ms() > begun + 60

    await until(older)
    await book.send(b"t young")
    assert await keep(book, retention_ms=60_000) == 0
    young = (await book.entries())[-1].place
    age = await book.desk.store.now_ms() - begun
    assert await keep(book, retention_ms=max(1, age - 50)) in (5, 6)  # the young one may be that old by now
    assert (await book.state()).trimmed <= young


async def test_trim_in_steps_of_1000_entries(book: Logbook) -> None:
    """Check that a trim takes steps of 1,000 entries, so that other calls run in between."""
    await fill(book, 2500)
    book.log.spec = LogSpec(max_bytes=100 * SIZE)
    await book.log.declare()
    steps = [await book.log.domain.function("log_trim", list(book.log.keys.log)) for _ in range(4)]
    assert steps == [[1000, 1], [1000, 1], [400, 0], [0, 0]]
    await check(book)


async def test_large_entries_are_trimmed_in_smaller_steps(book: Logbook) -> None:
    for number in range(1, 41):
        await book.accept(arrived(ONE, number, b"t " + b"x" * 200_000))
    book.log.spec = LogSpec(max_bytes=0)
    await book.log.declare()
    steps = [await book.log.domain.function("log_trim", list(book.log.keys.log)) for _ in range(9)]
    assert [number for number, _ in steps] == [5] * 7 + [4, 0]
    assert [more for _, more in steps] == [1] * 7 + [0, 0]
    await check(book)


async def test_log_uses_at_most_a_quarter_of_the_servers_memory(book: Logbook, server: Server) -> None:
    """Check that the log uses at most a quarter of the memory, or it would block the queues (StoreFull)."""
    for number in range(12):
        await book.send(b"t %04d" % number + b"x" * (1 << 20))
    with server.configured(maxmemory=str(32 << 20)):
        assert await book.log.trim() == 5
    await check(book)
    assert await book.counter("bytes") <= 8 << 20


async def test_size_counter_never_becomes_negative(book: Logbook, server: Server) -> None:
    """Check that the size never becomes negative, so that later entries count in full."""
    await fill(book, 10)
    server.call("HSET", book.log.keys.log[1], "bytes", SIZE + 1)
    book.log.spec = LogSpec(max_bytes=0)
    await book.log.declare()
    assert await book.log.trim() == 2
    assert await book.counter("bytes") == 0
    await book.accept(arrived(TWO, 1, LINE % 1))
    assert await book.counter("bytes") == SIZE
    assert await book.log.trim() == 1


async def test_empty_log_has_size_0(book: Logbook, server: Server) -> None:
    """Check that an empty log has size 0, or every new entry would be trimmed at once."""
    await fill(book, 10)
    server.call("XTRIM", book.log.keys.log[0], "MAXLEN", 0)
    assert await book.counter("bytes") == 10 * SIZE
    assert await book.log.trim() == 0
    assert await book.counter("bytes") == 0


async def test_numbers_survive_trimming(book: Logbook) -> None:
    """Check that trimmed numbers are neither requested nor stored again (pubsub.md 4.6)."""
    await fill(book, 10)
    await book.send(b"t x", b"t y")
    mine = own(await book.state())
    await forget(book)
    state = await book.state()
    held = {ONE: Intervals.parse("1-10"), mine: Intervals.parse("1-2")}
    assert state.held == state.gone == held
    assert await book.accept(arrived(ONE, 3, LINE % 3), arrived(mine, 1, b"t x")) == (0, 0)
    await book.send(b"t z")
    assert (await book.entries())[0].first == 3


async def test_places_survive_trimming(book: Logbook) -> None:
    """Check that a reader before the trimmed part continues after it; the serials show how much it missed."""
    await fill(book, 10)
    places = [entry.place for entry in await book.entries()]
    await keep(book, max_bytes=4 * SIZE)
    assert (await book.state()).trimmed == places[5]
    for place in (Place(0, 0), places[0], places[5]):
        rest = await book.entries(place)
        assert [entry.place for entry in rest] == places[6:]
        assert rest[0].place.serial - rest[0].messages - place.serial == 6 - place.serial
    assert await book.head() == places[-1]
    await forget(book)
    assert await book.head() == places[-1]
    await book.send(b"t x")
    assert (await book.entries())[0].place == (places[-1].era, 11)


async def test_gone_numbers_are_exactly_the_trimmed_ones(book: Logbook) -> None:
    """Check this for several origins with gaps and restored numbers, trimmed in steps."""
    rnd = random.Random(7)
    gaps = 0
    for _ in range(60):
        origin, first = rnd.choice((ONE, TWO)), rnd.randrange(1, 80)
        last = first + rnd.randrange(6)
        if rnd.random() < 0.2:
            _, missing = await book.accept(Gap(*origin, first, last))
            gaps += missing
        else:
            await book.accept(arrived(origin, first, *(LINE % n for n in range(first, last + 1))))
        if rnd.random() < 0.3:
            await book.send(b"t x")
        if rnd.random() < 0.2:
            book.log.spec = LogSpec(max_bytes=rnd.randrange(40) * SIZE)
            await book.log.declare()
            await book.log.trim()
        await check(book)
    assert gaps > 10
    assert await book.counter("trimmed_messages") > 20
