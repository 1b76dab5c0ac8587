"""Depth samples by upkeep and by deletion: docs/store.md, "Samples"."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.store import Queue
from services.store.model.errors import QueueNotEmpty
from tests.servers import Server
from tests.store.desk import Desk, numbered
from tests.store.upkeep.test_samples import RARELY, samples, write_samples


@pytest.fixture
async def desk(server: Server) -> AsyncIterator[Desk]:
    """Yield a process with upkeep, as an edge."""
    async with Desk(server, timing=RARELY) as desk:
        desk.store.start_serving()
        yield desk


async def age(desk: Desk, queue: Queue, seconds: int) -> None:
    """Age the last depth sample."""
    found = await desk.domain.link.call("HGET", queue.keys[1], "sampled")
    ms, _, digest = found.decode().partition(" ")
    await desk.domain.link.call("HSET", queue.keys[1], "sampled", f"{int(ms) - seconds * 1000} {digest}")


async def test_upkeep_samples_depth_and_totals(desk: Desk) -> None:
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
    fields = {name: sample[name] for name in ("v", "queue", "qid", "len", "leased", "dead", "dead_all")}
    assert fields == {
        **{"v": "1", "queue": "orders", "qid": queue.qid, "len": "6", "leased": "2", "dead": "1"},
        **{"dead_all": "2"},
    }
    assert 0 <= int(sample["oldest_ms"]) < 60_000
    assert 0 <= int(sample["age_ms"]) < 60_000
    assert len(sample) == 22


async def test_first_sample_has_the_queues_age(desk: Desk) -> None:
    """Check that a queue's first sample has the age since its creation (docs/store.md, "Samples")."""
    queue = await desk.queue()
    old = await desk.queue("old")
    await desk.domain.link.call("HDEL", old.keys[1], "sampled")  # as in a store of an older version
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
    rows = await samples(desk, "depth")
    found = [(s["queue"], s["added"], "age_ms" in s) for s in rows]
    assert found == [("orders", "1", True), ("old", "1", False), ("orders", "2", False), ("old", "2", False)]
    assert 0 <= int(rows[0]["age_ms"]) - 7 * 86_400_000 < 60_000


async def test_depths_are_sampled_on_change_at_a_bounded_rate(desk: Desk) -> None:
    queue = await desk.queue()

    async def depth_samples() -> int:
        await desk.domain.tidy(queue)
        async with desk.another() as other:
            await other.domain.tidy(queue)
        return len(await samples(desk, "depth"))

    assert await depth_samples() == 1
    await desk.put(queue, b"x")
    assert await depth_samples() == 1
    await age(desk, queue, 11)
    assert await depth_samples() == 2
    await age(desk, queue, 11)
    assert await depth_samples() == 2  # nothing has changed
    await age(desk, queue, 300)
    assert await depth_samples() == 3
    await desk.drain(queue)
    await age(desk, queue, 11)
    assert await depth_samples() == 4
    assert [(sample["len"], sample["oldest_ms"] == "0") for sample in await samples(desk, "depth")] == [
        *(("0", True), ("1", False), ("1", False), ("0", True))
    ]


async def test_deleted_queue_gets_a_last_sample(desk: Desk) -> None:
    """Check the last sample of a deleted queue, without reported or empty values, also of one without upkeep."""
    await write_samples(desk)  # there are samples
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
    rows = (await samples(desk, "depth"))[2:]
    found = [(s["queue"], s["qid"], s["len"], s["added"], "age_ms" in s) for s in rows]
    assert found == [("short", short.qid, "1", "1", True), ("known", known.qid, "2", "2", False)]
    assert {*rows[1]} == {*before[0]} - {"age_ms"}


async def test_last_sample_neither_creates_nor_trims_the_stream(desk: Desk, server: Server) -> None:
    """Check that a deletion neither creates nor trims the stream, as tools do not know the edges' settings."""
    key = desk.domain.keys.samples

    async def delete(name: str, *more: Any) -> None:
        queue = await desk.queue(name)
        await desk.put(queue, b"x")
        bound = [*queue.keys, *desk.domain.keys.bindings, *([key] if more else [])]
        assert await desk.domain.function("delete", bound, queue.qid, "Delete", *more) == [1, 1]

    await delete("a", b"a", 5)
    assert server.call("EXISTS", key) == 0
    await desk.domain.function("sample", [key], 3000, *((4, "v", "1", "kind", "x") * 500))
    await delete("b")  # by an older tool
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


async def test_damaged_queue_is_deleted_without_a_sample(desk: Desk, server: Server) -> None:
    """Check that a damaged queue can be deleted, without a last sample."""
    one, two = await desk.queue("one"), await desk.queue("two")
    for queue in (one, two):
        await desk.put(queue, b"x")
    server.call("HSET", one.keys[1], "leased", "junk")
    await desk.store.catalogue.delete(one)
    server.call("SET", desk.domain.keys.samples, "junk")
    await desk.store.catalogue.delete(two)
    assert [queue async for queue in desk.store.listing.queues()] == []


async def test_older_edge_does_upkeep_without_samples(desk: Desk) -> None:
    """Check that an older edge does upkeep with the new functions, without samples, as in a rolling update."""
    queue = await desk.queue()
    assert await desk.domain.function("upkeep", [*queue.keys], 60_000, 500, 0)
    assert await samples(desk, "depth") == []


async def test_sampling_keeps_the_queue_hash_compact(desk: Desk, server: Server) -> None:
    """Check that sampling keeps the hash compact: values have at most 64 octets (docs/decisions/0002-queue-hash.md)."""
    queue = await desk.queue()
    before = server.call("OBJECT", "ENCODING", queue.keys[1])
    await desk.domain.tidy(queue)
    assert server.call("OBJECT", "ENCODING", queue.keys[1]) == before
