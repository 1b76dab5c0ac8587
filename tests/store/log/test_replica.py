"""Storing neighbours' entries: exactly the numbers that are not held (pubsub.md 4.3, 4.4, 4.5, 5.1)."""

import asyncio

import pytest

from services.store.log.replica import BASELINE_BYTES, NEIGHBOURS, Arrived, Gap, Held, Origin, format_held
from services.store.model.errors import NumbersScattered
from services.store.model.intervals import MAX_NUMBER, Intervals
from tests.servers import Client
from tests.store.desk import Desk, until
from tests.store.logbook import Logbook, arrived, check_numbering, check_places, logbook, own

ONE: Origin = (b"one", b"i1")
TWO: Origin = (b"two", b"i1")
SCATTERED = 1000  # pieces that the numbers of one origin may come in
ORIGINS = 10_000


def numbers(*spans: str) -> list[Intervals]:
    return [Intervals.parse(span) for span in spans]


def lines(first: int, last: int, tag: bytes = b"t") -> list[bytes]:
    return [b"%b %d" % (tag, number) for number in range(first, last + 1)]


def run(origin: Origin, first: int, last: int) -> Arrived:
    return arrived(origin, first, *lines(first, last))


async def held(book: Logbook, origin: Origin) -> str:
    return (await book.state()).held.get(origin, Intervals()).format()


async def test_received_entries_keep_their_origin(book: Logbook) -> None:
    """Check that received entries keep their origin (pubsub.md 4.4)."""
    assert await book.accept(
        run(ONE, 1, 3), run(TWO, 7, 8), arrived((b"one", b"i2"), 1, b"u x", bridged=True)
    ) == (6, 0)
    entries = await book.entries()
    assert [(e.origin, e.first, e.messages, e.bridged) for e in entries] == [
        (b"one i1", 1, 3, False),
        (b"two i1", 7, 2, False),
        (b"one i2", 1, 1, True),
    ]
    assert await book.lines() == [*lines(1, 3), *lines(7, 8), b"u x"]
    check_numbering(entries)
    state = await book.state()
    assert state.held == dict(zip((ONE, TWO, (b"one", b"i2")), numbers("1-3", "7-8", "1-1"), strict=True))
    assert state.gone == {}
    assert await book.counter("accepted") == 6


async def test_own_numbers_continue_among_received_ones(book: Logbook) -> None:
    await book.send(b"mine 1")
    await book.accept(run(ONE, 1, 2))
    await book.send(b"mine 2")
    state = await book.state()
    assert state.held == {ONE: Intervals.parse("1-2"), own(state): Intervals.parse("1-2")}
    assert [e.place.serial for e in await book.entries()] == [1, 3, 4]


@pytest.mark.parametrize(
    ("before", "comes", "new"),
    [
        ([(1, 9)], (1, 9), []),
        ([(1, 9)], (3, 5), []),
        ([(3, 5)], (1, 9), [1, 2, 6, 7, 8, 9]),
        ([(3, 5)], (1, 4), [1, 2]),
        ([(3, 5)], (5, 9), [6, 7, 8, 9]),
        ([(3, 5)], (6, 9), [6, 7, 8, 9]),
        ([(3, 5)], (1, 2), [1, 2]),
        ([(1, 1), (3, 3), (5, 5)], (1, 5), [2, 4]),
        ([(2, 2), (4, 4)], (1, 5), [1, 3, 5]),
    ],
)
async def test_held_numbers_are_skipped(
    book: Logbook, before: list[tuple[int, int]], comes: tuple[int, int], new: list[int]
) -> None:
    """Check that held numbers are skipped: whole runs, none of a run, any part (pubsub.md 4.4)."""
    for span in before:
        await book.accept(run(ONE, *span))
    head = await book.head()
    for taken in (len(new), 0):
        assert await book.accept(run(ONE, *comes)) == (taken, 0)
    assert await book.lines(head) == [b"t %d" % number for number in new]
    stored = [n for e in await book.entries(head) for n in range(e.first, e.first + e.messages)]
    assert stored == new
    everything = Intervals.of([*before, comes])
    assert await held(book, ONE) == everything.format()
    assert await book.counter("accepted") == everything.total()
    assert await book.counter("skipped") == 2 * (comes[1] - comes[0] + 1) - len(new)
    check_places(await book.entries())


async def test_numbers_are_kept_as_few_intervals(book: Logbook, client: Client) -> None:
    """Check that adjacent intervals are merged on both sides, normally into one (pubsub.md 4.4)."""
    for first, last, shown in (
        (5, 6, "5-6"),
        (7, 8, "5-8"),
        (3, 4, "3-8"),
        (12, 12, "3-8+12-12"),
        (10, 10, ""),
        (9, 11, "3-12"),
    ):
        await book.accept(run(ONE, first, last))
        text = client.call("HGET", book.log.keys.log[2], b" ".join(ONE)).decode()
        assert text == shown or not shown
    assert await book.accept(run(ONE, 1, 14)) == (4, 0)
    assert client.call("HGET", book.log.keys.log[2], b" ".join(ONE)) == b"1-14"


async def test_number_from_two_neighbours_is_stored_once(book: Logbook, desk: Desk) -> None:
    """Check this for several concurrent links, and several processes that follow the same one (pubsub.md 4.3)."""
    other = await desk.another().__aenter__()
    async with logbook(other) as there:
        runs = [run(ONE, first, first + 6) for first in range(1, 60, 4)]
        results = await asyncio.gather(*(b.accept(r) for r in runs for b in (book, there, book)))
    assert sum(taken for taken, _ in results) == 63
    assert sorted(await book.lines()) == sorted(lines(1, 63))
    assert await held(book, ONE) == "1-63"


async def test_number_repeated_in_one_call_is_stored_once(book: Logbook) -> None:
    assert await book.accept(run(ONE, 1, 4), run(ONE, 3, 6), Gap(*ONE, 5, 8), run(ONE, 7, 9)) == (9, 2)
    assert await book.lines() == lines(1, 9)


async def test_own_entries_that_return_are_not_stored(book: Logbook) -> None:
    """Check that own entries which return over a link are not stored again (pubsub.md 4.3)."""
    await book.send(*lines(1, 5))
    state = await book.state()
    assert await book.accept(run(own(state), 2, 5), Gap(*own(state), 1, 3)) == (0, 0)
    assert await book.state() == state
    assert await book.counter("skipped") == 4


async def test_entries_of_own_older_incarnations_are_accepted(book: Logbook) -> None:
    """Check that a restored store gets back the entries that its neighbours still hold (pubsub.md 4.4)."""
    store, _ = own(await book.state())
    assert await book.accept(run((store, b"older"), 5, 6)) == (2, 0)
    assert await held(book, (store, b"older")) == "5-6"


@pytest.mark.parametrize(("first", "last"), [(2, 10), (4, 10), (9, 10), (4, 4), (1, 4)])
@pytest.mark.parametrize("gap", [False, True])
async def test_unknown_own_numbers_end_the_incarnation(
    book: Logbook, first: int, last: int, gap: bool
) -> None:
    """Check that unknown own numbers end the incarnation, as this store has lost data (pubsub.md 4.4)."""
    await book.send(*lines(1, 3))
    before = await book.state()
    old = own(before)
    item = Gap(*old, first, last) if gap else run(old, first, last)
    new = last - max(first, 4) + 1
    assert await book.accept(item) == ((0, new) if gap else (new, 0))
    state = await book.state()
    assert own(state) != old
    assert state.head.era > before.head.era
    reported = Intervals.of([(max(first, 4), last)])
    assert state.held == {old: Intervals.of([(1, 3)]) if gap else reported.add(1, 3)}
    assert state.gone == ({old: reported} if gap else {})
    await book.send(b"t 1")
    assert (await book.entries())[-1].first == 1
    check_places(await book.entries())


# gaps


async def test_gap_is_counted_once_and_can_be_filled(book: Logbook) -> None:
    """Check that a gap is counted once, and that another neighbour can fill it (pubsub.md 4.5)."""
    for missing in (5, 0):
        assert await book.accept(Gap(*ONE, 4, 8)) == (0, missing)
    assert await book.accept(Gap(*ONE, 7, 10)) == (0, 2)
    state = await book.state()
    assert (state.held, state.gone) == ({}, {ONE: Intervals.parse("4-10")})
    assert await book.counter("gaps") == 7
    assert await book.accept(run(ONE, 3, 6)) == (4, 0)
    assert await book.lines() == lines(3, 6)
    state = await book.state()
    assert (state.held, state.gone) == ({ONE: Intervals.parse("3-6")}, {ONE: Intervals.parse("7-10")})
    assert await book.counter("gaps") == 4


async def test_numbers_received_elsewhere_are_not_gone(book: Logbook) -> None:
    """Check that numbers in a gap which the log has count as held, so that followers see no gap there."""
    await book.accept(run(ONE, 3, 4), run(ONE, 7, 7))
    assert await book.accept(Gap(*ONE, 1, 9)) == (0, 6)
    state = await book.state()
    assert state.held == {ONE: Intervals.parse("3-4+7-7")}
    assert state.gone == {ONE: Intervals.parse("1-2+5-6+8-9")}


async def test_gap_of_held_numbers_changes_nothing(book: Logbook) -> None:
    """Check that a gap of held numbers, which each new link repeats, changes nothing (pubsub.md 4.5, decision 9)."""
    await book.accept(run(ONE, 5, 6), Gap(*ONE, 1, 9))
    before = await book.state()
    for first, last in ((1, 9), (2, 3), (5, 6), (4, 7)):
        assert await book.accept(Gap(*ONE, first, last)) == (0, 0)
    assert await book.state() == before
    assert await book.counter("gaps") == 7


async def test_filled_gap_leaves_no_record(book: Logbook, client: Client) -> None:
    await book.accept(Gap(*ONE, 1, 9), run(ONE, 4, 6), run(ONE, 1, 3), run(ONE, 7, 9))
    assert (await book.state()).gone == {}
    assert await book.counter("gaps") == 0
    assert client.call("HLEN", book.log.keys.log[3]) == 0


# scattered numbers (decision 9)


def scattered(pieces: int, first: int = 1) -> list[Arrived]:
    return [run(ONE, first + 2 * i, first + 2 * i) for i in range(pieces)]


async def test_more_than_1000_intervals_are_refused(book: Logbook) -> None:
    """Check that a refusal keeps earlier intervals, and that other origins continue."""
    assert await book.accept(*scattered(SCATTERED)) == (SCATTERED, 0)
    with pytest.raises(NumbersScattered):
        await book.accept(*scattered(1, 2 * SCATTERED + 1))
    numbers = (await book.state()).held[ONE]
    assert len(numbers.spans) == numbers.total() == SCATTERED
    assert await book.accept(run(TWO, 1, 3)) == (3, 0)
    with pytest.raises(NumbersScattered):
        await book.accept(run(TWO, 4, 5), *scattered(1, 2 * SCATTERED + 1), run(TWO, 6, 9))
    assert await held(book, TWO) == "1-5"
    check_places(await book.entries())


async def test_more_than_1000_gaps_are_refused(book: Logbook) -> None:
    gaps = [Gap(*ONE, 2 * i + 1, 2 * i + 1) for i in range(SCATTERED)]
    assert await book.accept(*gaps) == (0, SCATTERED)
    with pytest.raises(NumbersScattered):
        await book.accept(Gap(*ONE, 2 * SCATTERED + 1, 2 * SCATTERED + 1))
    assert len((await book.state()).gone[ONE].spans) == await book.counter("gaps") == SCATTERED


async def test_more_than_10000_origins_are_refused(book: Logbook, client: Client) -> None:
    """Check that further origins are refused, while known ones continue."""
    known = [word for i in range(ORIGINS - 1) for word in (b"x%d inc1" % i, b"1-1")]
    client.call("HSET", book.log.keys.log[2], *known)
    assert await book.accept(run(ONE, 1, 3)) == (3, 0)
    with pytest.raises(NumbersScattered):
        await book.accept(run(TWO, 1, 3))
    assert await book.accept(run(ONE, 4, 5), run((b"x7", b"inc1"), 2, 2)) == (3, 0)
    assert len([origin for origin, numbers in (await book.state()).held.items() if numbers]) == ORIGINS


async def test_origin_with_1000_intervals_can_continue(book: Logbook) -> None:
    """Check that numbers which add no interval are accepted, so that a forger cannot end a store's links."""
    await book.accept(run(ONE, 1, 3), *scattered(SCATTERED - 1, 1001))
    assert await book.accept(run(ONE, 4, 6), run(ONE, 1, 6)) == (3, 0)
    assert await book.accept(run(ONE, 1001, 1003)) == (1, 0)
    assert await book.accept(Gap(*ONE, 7, 9)) == (0, 3)
    numbers = (await book.state()).held[ONE]
    assert (numbers.spans[:2], len(numbers.spans)) == (((1, 6), (1001, 1003)), SCATTERED - 1)


async def test_gaps_of_more_than_10000_origins_are_refused(book: Logbook, client: Client) -> None:
    known = [word for i in range(ORIGINS) for word in (b"x%d inc1" % i, b"1-1")]
    client.call("HSET", book.log.keys.log[3], *known)
    with pytest.raises(NumbersScattered):
        await book.accept(Gap(*ONE, 1, 3))
    assert await book.accept(Gap(b"x7", b"inc1", 2, 4)) == (0, 3)


# own data that went back in time


@pytest.mark.parametrize(("reported", "is_new"), [(0, False), (3, False), (4, True), (MAX_NUMBER, True)])
async def test_numbers_held_by_a_neighbour_count_as_given_out(
    book: Logbook, reported: int, is_new: bool
) -> None:
    """Check that numbers held by a neighbour begin a new incarnation before they are reused (pubsub.md 4.4)."""
    await book.send(*lines(1, 3))
    before = await book.state()
    state = await book.replica.state(reported)
    assert (own(state) != own(before)) == (state.head.era > before.head.era) == is_new
    assert state.held == {own(before): Intervals.parse("1-3")}
    await book.send(b"t 4")
    assert (await book.entries())[-1].first == (1 if is_new else 4)
    assert await book.replica.state() == await book.state()
    check_places(await book.entries())


# state of links


async def test_baseline_is_written_once(book: Logbook) -> None:
    """Check that a baseline is written once (pubsub.md 4.3)."""
    first: Held = {ONE: Intervals.parse("1-5+9-9"), TWO: Intervals.parse("3-4")}
    assert await book.replica.neighbours() == []
    assert await book.replica.baseline(b"one", first) == first
    assert await book.replica.baseline(b"one", {}) == first
    assert await book.replica.baseline(b"two", {}) == {}
    assert await book.replica.baseline(b"two", first) == {}
    assert sorted(await book.replica.neighbours()) == [b"one", b"two"]


async def test_seen_place_counts_for_its_incarnation(book: Logbook) -> None:
    replica = book.replica
    assert await replica.seen(b"one", b"i1") is None
    await replica.note_seen(b"one", b"i1", b"5-7")
    await replica.note_seen(b"one", b"i1", b"5-9")
    assert await replica.seen(b"one", b"i1") == "5-9"
    assert await replica.seen(b"one", b"i") is None
    assert await replica.seen(b"two", b"i1") is None
    await replica.note_seen(b"one", b"i2", b"6-1")
    assert await replica.seen(b"one", b"i1") is None


async def test_lease_has_one_holder(book: Logbook, desk: Desk) -> None:
    lease = book.replica.lease
    assert await lease(b"one", "me", 60_000)
    assert await lease(b"one", "me", 60_000)
    assert not await lease(b"one", "you", 60_000)
    assert await lease(b"two", "you", 60_000), "of another neighbour"
    assert not await lease(b"one", "you", 0), "only its holder lets go"
    assert not await lease(b"one", "you", 60_000)
    assert not await lease(b"one", "me", 0)
    assert await lease(b"one", "you", 60_000)


async def test_lease_expires(book: Logbook) -> None:

    lease = book.replica.lease
    assert await lease(b"one", "me", 50)
    await until(lambda: lease(b"one", "you", 60_000))
    assert not await lease(b"one", "me", 60_000)


async def test_baseline_is_bounded(book: Logbook) -> None:
    """Check that a too long baseline is not written, as baselines are kept for ever (decision 9)."""
    long = Intervals.of((9 * 10**15 + 2 * i, 9 * 10**15 + 2 * i) for i in range(BASELINE_BYTES // 34))
    most = {ONE: long}
    more = {ONE: long, TWO: Intervals.of((2 * i + 1, 2 * i + 1) for i in range(1000))}
    assert len(format_held(most)) <= BASELINE_BYTES < len(format_held(more))
    with pytest.raises(NumbersScattered):
        await book.replica.baseline(b"one", more)
    assert await book.replica.neighbours() == []
    assert await book.replica.baseline(b"one", most) == most
    assert await book.replica.baseline(b"one", more) == most, "what is known is not written again"


async def test_neighbours_are_bounded(book: Logbook, client: Client) -> None:
    """Check that the number of neighbours, with a baseline each, is bounded; known ones can still be linked."""
    known = [word for i in range(NEIGHBOURS - 1) for word in (b"x%d" % i, b"")]
    client.call("HSET", book.log.keys.log_base, *known)
    assert await book.replica.baseline(b"one", {}) == {}
    with pytest.raises(NumbersScattered):
        await book.replica.baseline(b"two", {})
    assert await book.replica.baseline(b"x5", {}) == {}
    assert len(await book.replica.neighbours()) == NEIGHBOURS
