"""What upkeep tells of how a queue stands, and whoever deletes it: docs/store.md, "Samples"."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.store import Queue
from services.store.model.errors import QueueNotEmpty
from tests.servers import Server
from tests.store.desk import Desk, numbered
from tests.store.upkeep.test_samples import RARELY, look, samples


@pytest.fixture
async def desk(server: Server) -> AsyncIterator[Desk]:
    """A process that looks after the store, as edges do."""
    async with Desk(server, timing=RARELY) as desk:
        desk.store.start_serving()
        yield desk


async def age(desk: Desk, queue: Queue, seconds: int) -> None:
    """As if the last sample of its depth were so old."""
    found = await desk.domain.link.call("HGET", queue.keys[1], "sampled")
    ms, _, digest = found.decode().partition(" ")
    await desk.domain.link.call("HSET", queue.keys[1], "sampled", f"{int(ms) - seconds * 1000} {digest}")


async def test_upkeep_tells_how_a_queue_stands_and_all_it_has_counted(desk: Desk) -> None:
    queue = await desk.queue(max_deliveries=2)
    await desk.put(queue, *numbered(9))
    await desk.reject(await desk.take(queue, 1))
    (letter,) = [letter.id async for letter in desk.dead(queue).matching()]
    await desk.dead(queue).redrive([letter])
    got = await desk.take(queue, 5)
    head, tail = got[0].cut(2)
    await desk.settle([head])
    await desk.reject([tail.cut(1)[0]])
    await desk.domain.tidy(queue)
    stats = await desk.stats(queue)
    (sample,) = await samples(desk, "depth")
    same = ("added", "delivered", "acked", "returned", "fenced", "expired", "duplicates", "redriven")
    same += ("purged", "dead_trimmed", "bytes_in", "bytes_out")
    assert {name: int(sample[name]) for name in same} == {name: stats[name] for name in same}
    assert stats["redriven"] == 1
    told = {name: sample[name] for name in ("v", "queue", "qid", "len", "leased", "dead", "dead_all")}
    assert told == {
        **{"v": "1", "queue": "orders", "qid": queue.qid, "len": "6", "leased": "2", "dead": "1"},
        **{"dead_all": "2"},
    }
    assert 0 <= int(sample["oldest_ms"]) < 60_000
    assert 0 <= int(sample["age_ms"]) < 60_000
    assert len(sample) == 22


async def test_only_the_first_look_says_how_long_ago_a_queue_was_made(desk: Desk) -> None:
    """docs/store.md, "Samples": what it has counted has come since then, however soon or late it was looked at."""
    queue = await desk.queue()
    old = await desk.queue("old")
    await desk.domain.link.call("HDEL", old.keys[1], "sampled")  # as a store of before made it
    (made,) = await desk.domain.link.call("HMGET", queue.keys[1], "sampled")
    zero, made_ms = map(int, made.split())
    assert zero == 0
    assert abs(made_ms - time.time() * 1000) < 60_000
    await desk.domain.link.call("HSET", queue.keys[1], "sampled", f"0 {made_ms - 7 * 86_400_000}")
    for _ in range(2):
        await desk.put(queue, b"x")
        await desk.put(old, b"x")
        await desk.domain.tidy(queue)
        await desk.domain.tidy(old)
        await age(desk, queue, 11)
        await age(desk, old, 11)
    told = await samples(desk, "depth")
    found = [(s["queue"], s["added"], "age_ms" in s) for s in told]
    assert found == [("orders", "1", True), ("old", "1", False), ("orders", "2", False), ("old", "2", False)]
    assert 0 <= int(told[0]["age_ms"]) - 7 * 86_400_000 < 60_000


async def test_depths_are_told_when_they_change_and_not_too_often(desk: Desk) -> None:
    queue = await desk.queue()

    async def told() -> int:
        await desk.domain.tidy(queue)
        async with desk.another() as other:
            await other.domain.tidy(queue)
        return len(await samples(desk, "depth"))

    assert await told() == 1
    await desk.put(queue, b"x")
    assert await told() == 1
    await age(desk, queue, 11)
    assert await told() == 2
    await age(desk, queue, 11)
    assert await told() == 2  # nothing has changed
    await age(desk, queue, 300)
    assert await told() == 3
    await desk.drain(queue)
    await age(desk, queue, 11)
    assert await told() == 4
    assert [(sample["len"], sample["oldest_ms"] == "0") for sample in await samples(desk, "depth")] == [
        *(("0", True), ("1", False), ("1", False), ("0", True))
    ]


async def test_a_queue_that_is_deleted_has_a_last_word(desk: Desk) -> None:
    """Also one that nobody looked at; what was told already is not told again, and what is empty stays unsaid."""
    await look(desk)  # there are samples
    short, known, still, unused = [await desk.queue(name) for name in ("short", "known", "still", "unused")]
    for queue in (short, known, still):
        await desk.put(queue, b"x")
    await desk.domain.tidy(known)
    await desk.domain.tidy(still)
    await desk.put(known, b"y")
    with pytest.raises(QueueNotEmpty):
        await desk.store.catalogue.delete(short, if_empty=True)
    before = await samples(desk, "depth")
    assert [sample["queue"] for sample in before] == ["known", "still"]
    for queue in (short, known, still, unused):
        await desk.store.catalogue.delete(queue)
        await desk.domain.delete(queue, "Delete")  # as when the answer was lost
    told = (await samples(desk, "depth"))[2:]
    found = [(s["queue"], s["qid"], s["len"], s["added"], "age_ms" in s) for s in told]
    assert found == [("short", short.qid, "1", "1", True), ("known", known.qid, "2", "2", False)]
    assert {*told[1]} == {*before[0]} - {"age_ms"}


async def test_a_last_word_begins_nothing_and_trims_nothing(desk: Desk, server: Server) -> None:
    """A tool that deletes does not know what edges keep, nor whether they do."""
    key = desk.domain.keys.samples

    async def delete(name: str, *more: Any) -> None:
        queue = await desk.queue(name)
        await desk.put(queue, b"x")
        bound = [*queue.keys, *desk.domain.keys.bindings, *([key] if more else [])]
        assert await desk.domain.function("delete", bound, queue.qid, "Delete", *more) == [1, 1]

    await delete("a", b"a", 5)
    assert server.call("EXISTS", key) == 0
    await desk.domain.function("sample", [key], 3000, *((4, "v", "1", "kind", "x") * 500))
    await delete("b")  # by a tool of before
    await delete("c", b"c", 0)
    assert server.call("XLEN", key) == 500
    await delete("d", b"d", 5)
    assert server.call("XLEN", key) == 501
    for _ in range(2):
        await desk.domain.function("sample", [key], 3000, *((4, "v", "1", "kind", "x") * 500))
    await delete("e", b"e", 5)
    assert server.call("XLEN", key) == 1501
    queue = await desk.queue("f")
    await desk.put(queue, b"x")
    with server.configured(maxmemory=server.info("memory")["used_memory"]):
        await desk.store.catalogue.delete(queue)
    assert server.call("XLEN", key) == 1501


async def test_what_is_spoilt_is_deleted_without_a_last_word(desk: Desk, server: Server) -> None:
    """Deleting it is the cure."""
    one, two = await desk.queue("one"), await desk.queue("two")
    for queue in (one, two):
        await desk.put(queue, b"x")
    server.call("HSET", one.keys[1], "leased", "junk")
    await desk.store.catalogue.delete(one)
    server.call("SET", desk.domain.keys.samples, "junk")
    await desk.store.catalogue.delete(two)
    assert [queue async for queue in desk.store.listing.queues()] == []


async def test_an_edge_of_before_does_upkeep_without_telling(desk: Desk) -> None:
    """While a store's edges are replaced one after the other, its functions are new already."""
    queue = await desk.queue()
    assert await desk.domain.function("upkeep", [*queue.keys], 60_000, 500, 0)
    assert await samples(desk, "depth") == []


async def test_the_samples_of_a_queue_keep_its_hash_compact(desk: Desk, server: Server) -> None:
    """docs/decisions/0002-queue-hash.md: a value of more than 64 octets would make a table of it."""
    queue = await desk.queue()
    before = server.call("OBJECT", "ENCODING", queue.keys[1])
    await desk.domain.tidy(queue)
    assert server.call("OBJECT", "ENCODING", queue.keys[1]) == before
