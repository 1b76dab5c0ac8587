"""The table of subscriptions: every change has a new version, and damage affects only its queue (pubsub.md 5.1)."""

import asyncio

import pytest

from services.store.log.log import NO_SUBSCRIPTIONS
from services.store.model.errors import BindingsChanged, StoreFault
from tests.servers import Client, Server
from tests.store.desk import Desk
from tests.store.logbook import Logbook, check_numbering, logbook


async def test_table_has_queues_and_patterns(book: Logbook, desk: Desk) -> None:
    assert await book.log.subscriptions() == NO_SUBSCRIPTIONS
    one = await book.bound("one", "a", "b*", ack_level="memory")
    await desk.queue("none")
    ((found),) = (await book.log.subscriptions()).queues
    assert (found.queue.name, found.queue.qid, found.patterns) == ("one", one.qid, ("a", "b*"))
    assert (found.queue.keys, found.queue.replicas) == (one.keys, 0)


async def test_every_change_has_a_new_version(book: Logbook, desk: Desk) -> None:
    """Check that every change has a new version; declaring the same document again is no change."""
    versions = [(await book.log.subscriptions()).version]
    queue = await desk.queue("one")

    async def changed() -> bool:
        versions.append((await book.log.subscriptions()).version)
        return versions[-1] not in versions[:-1]

    async def declared(**spec: object) -> bool:
        await book.change(queue, **spec)
        return await changed()

    assert not await changed()
    for _ in range(2):
        assert await declared(bindings={"text": {"subscribe": ["a"]}}) == (len(versions) == 3)
    assert await declared(bindings={"text": {"subscribe": ["b"]}})
    assert await declared(bindings={"text": {"subscribe": ["b"]}}, ack_level="memory")
    assert not await declared(bindings={"text": {"subscribe": ["b"]}}, ack_level="memory", max_length=5)
    assert await declared()
    assert not await declared()
    assert await declared(bindings={"text": {"subscribe": ["a"]}})
    await desk.store.catalogue.delete(queue)
    assert await changed()
    assert (await book.log.subscriptions()).queues == ()


async def test_sends_by_an_older_table_are_refused(book: Logbook, desk: Desk) -> None:
    """Check that nothing is stored for a send by a table from before a queue was added, changed or removed."""
    queue = await book.bound("one", "a")
    old = book.known
    await book.change(queue, bindings={"text": {"subscribe": ["b"]}})
    with pytest.raises(BindingsChanged):
        await book.send(b"a 1", to=(queue,))
    await book.refresh()
    await desk.store.catalogue.delete(queue)
    with pytest.raises(BindingsChanged):
        await book.send(b"b 1", to=(queue,))
    book.known = old
    with pytest.raises(BindingsChanged):
        await book.send(b"b 1")
    assert await book.entries() == []


async def test_versions_of_lost_data_are_not_reused(book: Logbook, server: Server) -> None:
    """Check that versions of lost data are not reused, so that a sender with the old table is refused."""
    await book.bound("one", "a")
    server.clear()
    async with Desk(server) as desk, logbook(desk) as new:
        await new.bound("two", "a")
        assert new.known.version != book.known.version


# damage


@pytest.mark.parametrize("key", ["s", "q"])
async def test_damaged_queue_affects_only_its_senders(
    book: Logbook, desk: Desk, server: Server, key: str
) -> None:
    bad, good = await book.bound("bad", "t"), await book.bound("good", "t")
    tagged = await book.publishing("tagged", "p")
    server.call("DEL", bad.keys["sq".index(key)])
    server.call("SET", bad.keys["sq".index(key)], "damaged")
    asked = [
        book.sending(b"u 1"),
        book.sending(b"t 2", to=(good,)),
        book.sending(b"t 3", to=(good, bad)),
        book.sending(b"t 4", to=(bad, good)),
        book.sending(b"t 5", to=(good,)),
        book.sending(b"u 6"),
        desk.publishing(tagged, b"7", source=desk.source),
    ]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None)] * 2 + [StoreFault] * 2 + [type(None)] * 2 + [
        list
    ]
    assert sorted(await book.lines()) == [b"p 7", b"t 2", b"t 5", b"u 1", b"u 6"]
    assert await desk.drain(good) == [b"2", b"5"]
    check_numbering(await book.entries())


async def test_log_stays_usable_after_a_damaged_call(book: Logbook, desk: Desk, server: Server) -> None:
    """Check that ids and numbers are not reused after a call that failed before it wrote its counters."""
    queue = await desk.queue()
    server.call("HSET", queue.keys[1], "added", "damaged")
    for number in range(3):
        asked = (book.sending(b"t %d" % number), desk.publishing(queue, b"x", source=desk.source))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert StoreFault in map(type, answers)
    await book.send(b"t last")
    entries = await book.entries()
    assert check_numbering(entries) == {entries[0].origin: entries[-1].place.serial + 1}
    assert entries[-1].block == b"SEND t last\n"


async def test_damaged_log_makes_no_copies(book: Logbook, desk: Desk, server: Server) -> None:
    queue = await book.bound("one", "t")
    server.call("SET", book.log.keys.log[0], "damaged")
    with pytest.raises(StoreFault):
        await book.send(b"t 1", to=(queue,))
    assert await desk.count(queue) == 0
    server.call("DEL", book.log.keys.log[0])
    await book.send(b"t 2", to=(queue,))
    assert await desk.drain(queue) == [b"2"]
    check_numbering(await book.entries())


@pytest.mark.parametrize(
    "document",
    [
        *("", "{", "[]", '"x"', "{}", '{"name": "x", "patterns": ["a"]}'),
        '{"name": 1, "patterns": 5, "ackLevel": "fsync"}',
        '{"name": "x", "patterns": "abc", "ackLevel": "fsync"}',
        '{"name": "x", "patterns": ["a"], "ackLevel": "no"}',
    ],
)
async def test_damaged_table_is_reported(book: Logbook, client: Client, document: str) -> None:
    client.call("HSET", book.log.keys.bindings[1], "q1", document)
    with pytest.raises(StoreFault, match="cannot be read"):
        await book.log.subscriptions()
    client.call("HSET", book.log.keys.bindings[1], "q1", b"\xff")
    with pytest.raises(StoreFault, match="b'q1'"):
        await book.log.subscriptions()
