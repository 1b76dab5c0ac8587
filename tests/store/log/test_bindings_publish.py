"""Queues that publish under a tag: every publish appears in the log atomically (pubsub.md 5.2, 5.3)."""

import asyncio

import pytest

from services.store import CommitPart, PipeSettings, Queue
from services.store.model.errors import OutcomeUnknown, QueueFull
from tests.proxy import Proxy
from tests.servers import Server
from tests.store.desk import Desk, encode, numbered, until
from tests.store.logbook import Logbook, check_numbering, logbook


@pytest.fixture
async def queue(book: Logbook) -> Queue:
    return await book.publishing("orders", "out")


def shown(*bodies: bytes, tag: bytes = b"out") -> list[bytes]:
    return [b"%b %b" % (tag, body) for body in bodies]


async def test_published_messages_appear_in_order(book: Logbook, desk: Desk, queue: Queue) -> None:
    """Check the order with several messages per entry and several entries per call."""
    await desk.put(queue, b"first")
    await desk.put(queue, *numbered(100))
    assert await book.lines() == shown(b"first", *numbered(100))
    entries = await book.entries()
    assert all(entry.bridged for entry in entries)
    assert [entry.messages for entry in entries] == [1, 32, 32, 32, 4]
    state = await book.state()
    assert check_numbering(entries) == {b"%b %b" % (state.store, state.incarnation): 102}


async def test_commit_publishes_to_the_log(book: Logbook, desk: Desk, queue: Queue) -> None:
    other, plain = await book.publishing("other", "more"), await desk.queue("plain")
    await desk.put(plain, b"x")
    got = await desk.take(plain)
    parts = [
        CommitPart(queue, [], encode(*numbered(40)), "t"),
        CommitPart(other, [], encode(b"y"), "t"),
        CommitPart(plain, got, [], "t"),
    ]
    for _ in range(2):
        await desk.commit("t1", *parts)
    assert await book.lines() == [*shown(*numbered(40)), b"more y"]


async def test_refused_messages_do_not_appear(book: Logbook, desk: Desk) -> None:
    queue = await book.publishing("small", "out", max_length=40)
    refused = await desk.publish(queue, *numbered(60))
    assert [index for index, _ in refused] == list(range(40, 60))
    with pytest.raises(QueueFull):
        await desk.commit("t1", CommitPart(queue, [], encode(b"x"), "t"))
    assert await book.lines() == shown(*numbered(40))


async def test_displacing_messages_appear(book: Logbook, desk: Desk) -> None:
    queue = await book.publishing("ring", "out", max_length=5, overflow="dead_letter_oldest")
    await desk.put(queue, *numbered(50))
    await desk.commit("t1", CommitPart(queue, [], encode(*numbered(3, 50)), "t"))
    assert await book.lines() == shown(*numbered(53))


async def test_returned_messages_do_not_appear_again(book: Logbook, desk: Desk) -> None:
    """Check that messages returned to the front or the end, or redriven, are not published again."""
    queue = await book.publishing("orders", "out", max_deliveries=2)
    await desk.put(queue, *numbered(4))
    for to_end in (False, True):
        (got,) = await desk.take(queue, 1)
        await desk.release([got], failed=False, to_end=to_end)
    for _ in range(2):
        await desk.release(await desk.take(queue, 1), failed=True)
    letters = [letter.id async for letter in desk.dead(queue).matching()]
    assert (await desk.dead(queue).redrive(letters)).moved == 1
    assert await book.lines() == shown(*numbered(4))
    assert sorted(await desk.drain(queue)) == numbered(4)


async def test_bridged_messages_cross_no_other_bridge(book: Logbook, desk: Desk, queue: Queue) -> None:
    """Check that copies of a SEND are not published, while publishes in the same call are."""
    both = await desk.queue("both", bindings={"text": {"subscribe": ["t"], "publish": "again"}})
    await book.refresh()
    source = desk.source
    asked = []
    for number in range(5):
        asked.append(book.sending(b"t %d" % number, to=(both,), source=source))
        asked.append(book.asking_head(source))
        asked.append(desk.publishing(queue, b"%d" % number, source=source))
    await asyncio.gather(*asked)
    assert await book.lines() == [line for n in range(5) for line in (b"t %d" % n, b"out %d" % n)]
    assert await desk.drain(both) == [b"%d" % n for n in range(5)]
    await desk.put(both, b"by hand")
    assert (await book.lines())[-1] == b"again by hand"


async def test_tag_follows_the_document(book: Logbook, desk: Desk, queue: Queue) -> None:
    await desk.put(queue, b"1")
    await book.change(queue, bindings={"text": {"publish": "other"}})
    await desk.put(queue, b"2")
    await book.change(queue)
    await desk.put(queue, b"3")
    assert await book.lines() == [b"out 1", b"other 2"]
    assert (await book.log.subscriptions()).version == "0", "a queue that only publishes is not a subscriber"


async def test_publish_with_lost_reply_appears_once(own_server: Server) -> None:
    async with (
        Proxy(own_server.port) as proxy,
        Desk(own_server),
        Desk(proxy.url) as desk,
        logbook(desk) as book,
    ):
        queue = await book.publishing("orders", "out")
        proxy.lose_replies_to = b"ps1_work"
        asked = desk.publishing(queue, *numbered(40))
        await until(lambda: proxy.lost)
        proxy.lose_replies_to = b""
        assert await asked == []
        assert await book.lines() == shown(*numbered(40))


async def test_log_matches_the_queue_after_a_kill(own_server: Server) -> None:
    hasty = PipeSettings(patience_s=20.0)
    async with Desk(own_server, pipe=hasty) as desk, logbook(desk) as book:
        queue = await book.publishing("orders", "out")
        asked = [desk.publishing(queue, body) for body in numbered(300)]
        own_server.kill9()
        own_server.restart()
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(a) for a in answers} <= {list, OutcomeUnknown}
        assert await book.lines() == shown(*await desk.drain(queue))
