"""Copies of lines from a link for subscribed queues; none of them stops the link (pubsub.md 5.1)."""

import pytest

from services.store import Queue
from services.store.log.replica import Gap, Origin
from services.store.model import records
from services.store.model.errors import BindingsChanged
from services.store.upkeep.stats_poller import copies_lost
from tests.servers import Server
from tests.store.desk import Desk
from tests.store.logbook import Logbook, arrived

ONE: Origin = (b"one", b"i1")


def lines(count: int) -> list[bytes]:
    return [b"t %d" % number for number in range(1, count + 1)]


def copy(queue: Queue, index: int, body: bytes) -> tuple[int, Queue, bytes]:
    return index, queue, records.encode(body)


async def dead(desk: Desk, queue: Queue) -> list[tuple[str, bytes]]:
    return [(letter.reason, letter.body) async for letter in desk.dead(queue).matching()]


async def test_copies_are_made_of_new_lines_only(book: Logbook, desk: Desk) -> None:
    """Check that copies are made of new lines only (pubsub.md 5.1)."""
    one, two = await book.bound("one", "t"), await book.bound("two", "t")
    copies = [copy(one, i, b"%d" % (i + 1)) for i in range(4)] + [copy(two, 2, b"3")]
    await book.accept(arrived(ONE, 2, b"t 2"))
    item = arrived(ONE, 1, *lines(4), copies=copies)
    for taken in (3, 0):
        assert await book.accept(item) == (taken, 0)
    assert await desk.drain(one) == [b"1", b"3", b"4"]
    assert await desk.drain(two) == [b"3"]
    assert (await desk.stats(one))["added"] == 3


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"max_length": 1}, "rejected_full"),
        ({"paused": True}, "refused"),
        ({"max_bytes": 1}, "rejected_full"),
    ],
)
async def test_full_queue_does_not_stop_the_link(
    book: Logbook, desk: Desk, spec: dict[str, int], reason: str
) -> None:
    """Check that a copy for a full queue becomes its dead letter (pubsub.md 5.1)."""
    queue, other = await book.bound("shut", "t", **spec), await book.bound("other", "t")
    copies = [copy(q, i, b"%d" % i) for i in range(3) for q in (queue, other)]
    assert await book.accept(arrived(ONE, 1, *lines(3), copies=copies)) == (3, 0)
    assert await book.lines() == lines(3)
    assert await desk.drain(other) == [b"0", b"1", b"2"]
    taken = [] if spec.get("paused") else [b"0"]
    assert await dead(desk, queue) == [(reason, b"%d" % i) for i in range(len(taken), 3)]
    if not spec.get("paused"):
        assert await desk.drain(queue) == taken


async def test_reserved_queue_does_not_stop_the_link(book: Logbook, desk: Desk) -> None:
    queue = await book.bound("held", "t")
    assert await desk.domain.claims.reserve(queue, "holder", 60_000)
    assert await book.accept(arrived(ONE, 1, b"t 1", copies=[copy(queue, 0, b"1")])) == (1, 0)
    assert await dead(desk, queue) == [("refused", b"1")]


async def test_too_large_copy_does_not_stop_the_link(book: Logbook, desk: Desk) -> None:
    """Check that a too large copy is not stored in a transmission queue (rqp_mca.md 3.1)."""
    remote = {"protocol": "rqp-mca", "queueId": 7, "maxMessageBytes": 1}
    queue = await book.bound("far", "t", remote=remote)
    copies = [copy(queue, 0, b"12"), copy(queue, 1, b"1")]
    assert await book.accept(arrived(ONE, 1, *lines(2), copies=copies)) == (2, 0)
    assert await dead(desk, queue) == [("refused", b"12")]
    assert await desk.drain(queue) == [b"1"]


async def test_later_copies_displace_earlier_ones(book: Logbook, desk: Desk) -> None:
    queue = await book.bound("ring", "t", max_length=2, overflow="dead_letter_oldest")
    copies = [copy(queue, i, b"%d" % i) for i in range(5)]
    await book.accept(arrived(ONE, 1, *lines(5), copies=copies))
    assert await desk.drain(queue) == [b"3", b"4"]
    assert [body for _, body in await dead(desk, queue)] == [b"0", b"1", b"2"]


async def test_copies_notify_waiting_consumers(book: Logbook, desk: Desk, server: Server) -> None:
    queue = await book.bound("one", "t")
    with server.client() as client:
        client.call("SUBSCRIBE", desk.domain.keys.wake_channel)
        await book.accept(arrived(ONE, 1, b"t 1", copies=[copy(queue, 0, b"1")]))
        assert client.read_reply()[2] == queue.qid.encode()


async def test_copies_by_other_bindings_are_refused(book: Logbook, desk: Desk) -> None:
    """Check that lines with copies by other bindings are refused, as a missing copy could not be added later."""
    queue = await desk.queue("late", bindings={"text": {"subscribe": ["t"]}})
    with pytest.raises(BindingsChanged):
        await book.accept(arrived(ONE, 1, *lines(3)), Gap(*ONE, 4, 5))
    assert (await book.state()).held == {}
    assert await book.entries() == []
    await book.refresh()
    assert await book.accept(arrived(ONE, 1, b"t 1", copies=[copy(queue, 0, b"1")])) == (1, 0)


async def test_received_lines_cross_no_bridge_back(book: Logbook, desk: Desk) -> None:
    """Check that received lines are not published back (pubsub.md 5.2)."""
    bindings = {"text": {"subscribe": ["t"], "publish": "back"}}
    queue = await desk.queue("both", bindings=bindings)
    await book.refresh()
    await book.accept(arrived(ONE, 1, b"t 1", copies=[copy(queue, 0, b"1")]))
    assert await book.lines() == [b"t 1"]
    assert await desk.drain(queue) == [b"1"]


@pytest.mark.parametrize("key", ["s", "q"])
async def test_damaged_queue_stops_neither_link_nor_other_queues(
    book: Logbook, desk: Desk, server: Server, key: str
) -> None:
    """Check that the numbers of lines for a damaged queue are recorded, or they would be sent again and again."""
    bad, good = await book.bound("bad", "t"), await book.bound("good", "t")
    damaged = bad.keys["sq".index(key)]
    server.call("DEL", damaged)
    server.call("SET", damaged, "damaged")
    copies = [copy(q, i, b"%d" % i) for i in range(3) for q in (good, bad)]
    assert await book.accept(arrived(ONE, 1, *lines(3), copies=copies)) == (3, 0)
    assert await book.accept(arrived(ONE, 1, *lines(4), copies=copies)) == (1, 0)
    await book.send(b"t 5")
    assert await book.lines() == [*lines(4), b"t 5"]
    assert await desk.drain(good) == [b"0", b"1", b"2"]
    assert await book.counter("copies_lost") == 3
    assert await copies_lost(desk.store.domains) == 3
