"""Queues that subscribe to the log: SEND and its copies are stored atomically (pubsub.md 5.1)."""

import asyncio

import pytest

from services.store import INTERNAL_CLIENT, Queue, Source
from services.store.model.errors import (
    QueueFull,
    QueuePaused,
    QueueReserved,
)
from tests.store.desk import Desk, bodies
from tests.store.logbook import Logbook, check_numbering


async def contents(book: Logbook, *queues: Queue) -> list[int]:
    """Return the messages in the log, in each queue, and in its dead letters."""
    found = [len(await book.lines())]
    for queue in queues:
        stats = await book.desk.stats(queue)
        found += [stats["ready"] + stats["in_flight"], stats["dead_letters"]]
    return found


async def test_each_queue_gets_its_copy(book: Logbook, desk: Desk) -> None:
    one, two = await book.bound("one", "a"), await book.bound("two", "a*", max_length=5)
    await book.send(b"a 1", to=(one, two))
    await book.send(b"ab 2", to=(two,))
    await book.send(b"b 3")
    assert await book.lines() == [b"a 1", b"ab 2", b"b 3"]
    assert await desk.drain(one) == [b"1"]
    (first, *_) = await desk.take(two)
    assert bodies([first]) == [b"1", b"2"][: first.count]
    stats = await desk.stats(two)
    assert (stats["added"], stats["bytes_in"], stats["dead"]) == (2, 2, 0)


async def test_copies_keep_the_order_of_the_log(book: Logbook, desk: Desk) -> None:
    """Check that copies keep the log's order, even if sends without copies share the call (pubsub.md 3.4)."""
    queue = await book.bound("one", "b")
    sources = [Source(INTERNAL_CLIENT) for _ in range(5)]
    asked = []
    for number in range(200):
        to = (queue,) if number % 3 == 0 else ()
        asked.append(book.sending(b"b %d" % number, to=to, source=sources[number % 5]))
    await asyncio.gather(*asked)
    lines = await book.lines()
    assert lines == [b"b %d" % number for number in range(200)]
    assert await desk.drain(queue) == [b"%d" % number for number in range(0, 200, 3)]
    check_numbering(await book.entries())
    assert len(await book.entries()) < 10


# refused whole


@pytest.mark.parametrize("bound", [{"max_length": 1}, {"max_bytes": 3}])
async def test_full_queue_refuses_the_whole_send(book: Logbook, bound: dict[str, int]) -> None:
    first, full, last = (
        await book.bound("1", "t"),
        await book.bound("2", "t", **bound),
        await book.bound("3", "t"),
    )
    await book.send(b"t abc", to=(first, full, last))
    for to in ((first, full, last), (full, first), (last, full)):
        with pytest.raises(QueueFull):
            await book.send(b"t x", to=to)
    assert await contents(book, first, full, last) == [1, 1, 0, 1, 0, 1, 0]
    await book.send(b"t y", to=(first, last))
    assert await contents(book, first, full, last) == [2, 2, 0, 1, 0, 2, 0]
    assert book.desk.refusals["queue_full"] == 3


async def test_refused_send_does_not_affect_others(book: Logbook) -> None:
    """Check that each send in a call gets its own answer."""
    full, other = await book.bound("full", "t", max_length=2), await book.bound("other", "t")
    asked = [book.sending(b"t %d" % i, to=(other, full) if i % 2 else ()) for i in range(10)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [i for i, answer in enumerate(answers) if isinstance(answer, QueueFull)] == [5, 7, 9]
    assert await book.lines() == [b"t %d" % i for i in (0, 1, 2, 3, 4, 6, 8)]
    assert await contents(book, full, other) == [7, 2, 0, 2, 0]


async def test_paused_and_reserved_queues_refuse(book: Logbook) -> None:
    shut, other = await book.bound("shut", "t"), await book.bound("other", "t")
    bindings = {"text": {"subscribe": ["t"]}}
    await book.change(shut, paused=True, bindings=bindings)
    with pytest.raises(QueuePaused):
        await book.send(b"t x", to=(other, shut))
    await book.change(shut, bindings=bindings)
    assert await book.desk.domain.claims.reserve(shut, "holder", 60_000)
    with pytest.raises(QueueReserved):
        await book.send(b"t x", to=(other, shut))
    assert await contents(book, shut, other) == [0, 0, 0, 0, 0]


async def test_too_large_message_displaces_none(book: Logbook) -> None:
    small = await book.bound("small", "t", max_bytes=5, overflow="dead_letter_oldest")
    await book.send(b"t abc", to=(small,))
    with pytest.raises(QueueFull):
        await book.send(b"t abcdef", to=(small,))
    assert await contents(book, small) == [1, 1, 0]


# where the oldest make way


@pytest.mark.parametrize("bound", [{"max_length": 2}, {"max_bytes": 2}])
async def test_oldest_messages_make_way(book: Logbook, desk: Desk, bound: dict[str, int]) -> None:
    queue = await book.bound("ring", "t", overflow="dead_letter_oldest", **bound)
    await asyncio.gather(*(book.sending(b"t %d" % i, to=(queue,)) for i in range(5)))
    assert await contents(book, queue) == [5, 2, 3]
    assert await desk.drain(queue) == [b"3", b"4"]


@pytest.mark.parametrize("bound", [{"max_length": 2}, {"max_bytes": 2}])
async def test_leased_messages_do_not_make_way(book: Logbook, desk: Desk, bound: dict[str, int]) -> None:
    """Check that a send is refused rather than stored without its copy, as leased messages do not make way."""
    queue = await book.bound("ring", "t", overflow="dead_letter_oldest", **bound)
    other = await book.bound("other", "t")
    for body in (b"t 1", b"t 2"):
        await book.send(body, to=(queue,))
    held = await desk.take(queue)
    with pytest.raises(QueueFull):
        await book.send(b"t 3", to=(other, queue))
    assert await contents(book, queue, other) == [2, 2, 0, 0, 0]
    await desk.settle(held)
    await book.send(b"t 4", to=(other, queue))
    assert await contents(book, queue, other) == [3, 1, 0, 1, 0]


async def test_message_that_does_not_fit_displaces_none(book: Logbook, desk: Desk) -> None:
    """Check that a message which does not fit displaces none, after the bound was lowered below the leased messages."""
    queue = await book.bound("ring", "t")
    await desk.put(queue, *[b"x"] * 5)
    held = await desk.take(queue, 3)
    bindings = {"text": {"subscribe": ["t"]}}
    await book.change(queue, max_length=2, overflow="dead_letter_oldest", bindings=bindings)
    with pytest.raises(QueueFull):
        await book.send(b"t 1", to=(queue,))
    assert await contents(book, queue) == [0, 5, 0]
    await desk.settle(held)


async def test_many_messages_make_way_in_steps(book: Logbook, desk: Desk) -> None:
    """Check that after a lowered bound, sends are refused until enough messages have made way."""
    queue = await book.bound("ring", "t")
    await desk.put(queue, *[b"x"] * 2500)
    await book.change(
        queue, max_length=10, overflow="dead_letter_oldest", bindings={"text": {"subscribe": ["t"]}}
    )
    stored = 0
    for _ in range(4):
        try:
            await book.send(b"t y", to=(queue,))
        except QueueFull:
            assert stored == 0
        else:
            stored += 1
    assert stored >= 1
    assert len(await book.lines()) == stored
    assert (await desk.drain(queue))[-stored:] == [b"y"] * stored


async def test_send_refused_by_another_queue_displaces_none(book: Logbook) -> None:
    ring = await book.bound("ring", "t", max_length=1, overflow="dead_letter_oldest")
    full = await book.bound("full", "t", max_length=1)
    await book.send(b"t 1", to=(ring, full))
    for to in ((ring, full), (full, ring)):
        with pytest.raises(QueueFull):
            await book.send(b"t 2", to=to)
    assert await contents(book, ring, full) == [1, 1, 0, 1, 0]
