"""Samples of edges' activity in a bounded stream of the domain (docs/store.md, Samples)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.store import PipeSettings, Source
from services.store.model.buckets import CLASSES
from services.store.model.client import INTERNAL_CLIENT
from services.store.model.errors import LeaseLost, QueueFull, StoreError
from services.store.model.keys import DomainKeys
from services.store.model.operations import CommitPart, Send
from services.store.pipeline.domain import Timing
from tests.servers import Server
from tests.store.desk import Desk, encode, numbered, until

RARELY = Timing(sample_s=3600.0)  # tests write samples explicitly
SUMMED = {
    "in": "added",
    "out": "delivered",
    "acked": "acked",
    "returned": "returned",
    "in_octets": "bytes_in",
}
QUEUE_FIELDS = [
    *("v", "kind", "edge", "process", "n", "ms", "queue", "in", "in_octets", "out", "out_octets"),
    *("acked", "returned", "rejected", "refused", "refused_puts", "put", "wait"),
]
EDGE_FIELDS = [
    *("v", "kind", "edge", "process", "n", "ms"),
    *("connections", "opened", "received_octets", "sent_octets", "refused"),
]


@pytest.fixture
async def desk(server: Server) -> AsyncIterator[Desk]:
    """Yield a process with upkeep, as an edge."""
    async with Desk(server, timing=RARELY) as desk:
        desk.store.start_serving()
        yield desk


async def samples(desk: Desk, kind: str = "queue", domain: str = "main") -> list[dict[str, str]]:
    entries = await desk.store.get_domain(domain).link.call("XRANGE", DomainKeys(domain).samples, "-", "+")
    found = [
        {flat[i].decode(): flat[i + 1].decode("utf-8", "surrogateescape") for i in range(0, len(flat), 2)}
        for _, flat in entries
    ]
    return [sample for sample in found if sample["kind"] == kind]


async def write_samples(desk: Desk) -> None:
    await desk.store.sampler.write()


async def test_sample_has_one_processes_activity_on_one_queue(desk: Desk) -> None:
    queue = await desk.queue(max_length=4)
    await desk.publish(queue, b"a", b"bb", b"ccc", b"dddd", b"eeeee")
    got = await desk.take(queue, 3)
    first, rest = got[0].cut(1)
    await desk.settle([first])
    second, third = rest.cut(1)
    await desk.release([second])
    await desk.reject([third])
    await desk.take(queue, 1)
    await write_samples(desk)
    (sample,) = await samples(desk)
    assert list(sample) == QUEUE_FIELDS
    assert sample["process"].startswith("test-")
    assert 1 <= int(sample["ms"]) < 60_000
    put, wait = (list(map(int, sample.pop(name).split(","))) for name in ("put", "wait"))
    assert (len(put), len(wait), sum(put), sum(wait)) == (CLASSES, CLASSES, 4, 3)
    del sample["process"], sample["ms"]
    assert sample == {
        **{"v": "1", "kind": "queue", "edge": "test", "n": "1", "queue": "orders"},
        **{"in": "4", "in_octets": "10", "out": "4", "out_octets": "8"},
        **{"acked": "1", "returned": "1", "rejected": "1", "refused": "queue_full=1", "refused_puts": "1"},
    }


async def test_sum_of_samples_matches_the_queues_counters(desk: Desk) -> None:
    """Check this for two processes, over several rounds, in two domains."""
    queues = [await desk.queue("one"), await desk.queue("two"), await desk.queue("far", domain="elsewhere")]
    async with desk.another() as other:
        other.store.start_serving()
        for step in range(6):
            one = (desk, other)[step % 2]
            here = queues[step % 2]
            await one.put(here, *numbered(10 * step + 1))
            got = await one.take(here, 7)
            await one.settle(got[:1])
            await one.release(got[1:]) if got[1:] else None
            await write_samples(one)
        away = desk.another(domain="elsewhere")
        away.store.start_serving("elsewhere")
        await away.put(queues[2], b"x")
        await write_samples(away)
        found = [*await samples(desk), *await samples(desk, domain="elsewhere")]
        for queue in queues:
            stats = await desk.stats(queue)
            mine = [sample for sample in found if sample["queue"] == queue.name]
            sums = {theirs: sum(int(sample[ours]) for sample in mine) for ours, theirs in SUMMED.items()}
            assert sums == {name: stats[name] for name in sums}
    names = [(sample["process"], sample["n"], sample["queue"]) for sample in found]
    assert len(set(names)) == len(names)
    assert len({process for process, _, _ in names}) == 3


async def test_refused_puts_count_messages_of_publishes(desk: Desk) -> None:
    """Check that refused puts include all parts of a commit, but not late settles and takes."""
    full, free = await desk.queue("full", max_length=2), await desk.queue("free")
    await desk.publish(full, b"a", b"b", b"c")
    got = await desk.take(full, 1)
    await desk.settle(got)
    for late in (desk.settle, desk.release, desk.reject):
        with pytest.raises(LeaseLost):
            await late(got)
    await desk.put(full, b"d")
    parts = [CommitPart(full, [], encode(b"x", b"y"), "test"), CommitPart(free, [], encode(b"z"), "test")]
    with pytest.raises(QueueFull):
        await desk.commit("c", *parts)
    await write_samples(desk)
    found = {
        each["queue"]: (each["in"], each["refused"], each["refused_puts"]) for each in await samples(desk)
    }
    assert found["full"] == ("3", "lease_lost=3,queue_full=2", "3")
    assert found["free"] == ("0", "", "1")


async def test_idle_queues_have_no_sample_and_the_process_always_has(desk: Desk) -> None:
    queue = await desk.queue()
    for put in (True, False, False, True):
        if put:
            await desk.put(queue, b"x")
        await write_samples(desk)
    assert [sample["n"] for sample in await samples(desk)] == ["1", "4"]
    written = await samples(desk, "edge")
    assert [sample["n"] for sample in written] == ["1", "2", "3", "4"]
    assert list(written[0]) == EDGE_FIELDS
    assert {sample["connections"] + sample["refused"] for sample in written} == {"0"}


async def test_refusal_without_queue_is_in_the_process_sample(desk: Desk) -> None:
    outcomes: list[object] = []
    desk.pipe.log.send(Source(INTERNAL_CLIENT), Send(b"SEND t x\n", 1, [], "test", "0", outcomes.append), 0)
    await until(lambda: outcomes)
    desk.pipe.tallies.of(None).refuse(StoreError(), 2)
    await write_samples(desk)
    await write_samples(desk)
    assert [sample["refused"] for sample in await samples(desk, "edge")] == ["store_error=2", ""]


async def test_queue_name_may_be_any_octets(desk: Desk) -> None:
    queue = await desk.queue("n\udcff=,\n")
    await desk.put(queue, b"x")
    await write_samples(desk)
    assert [sample["queue"] for sample in await samples(desk)] == ["n\udcff=,\n"]


async def test_more_samples_than_a_page_are_written(desk: Desk) -> None:
    queues = [await desk.queue(f"q{number}") for number in range(120)]
    await asyncio.gather(*(desk.put(queue, b"x") for queue in queues))
    await write_samples(desk)
    assert Counter(sample["n"] for sample in await samples(desk)) == {"1": 120}


async def test_samples_are_written_periodically_and_at_close(server: Server) -> None:
    async with Desk(server) as desk:
        queue = await desk.queue()
        async with desk.another(timing=Timing(sample_s=0.05)) as edge:
            edge.store.start_serving()
            await edge.put(queue, b"x")

            async def has_samples() -> list[Any]:
                return await samples(desk)

            await until(has_samples)
        last = len(await samples(desk, "edge"))
        assert last >= 2
        ends = desk.another(timing=RARELY)
        ends.store.start_serving()
        await ends.put(queue, b"y")
        await ends.close()
        assert [sample["in"] for sample in await samples(desk)] == ["1", "1"]


async def test_no_samples_are_written_if_none_are_kept(server: Server) -> None:
    async with Desk(server, timing=Timing(sample_s=0.01, samples_kept=0)) as desk:
        desk.store.start_serving()
        queue = await desk.queue()
        await desk.put(queue, b"x")
        await desk.domain.tidy(queue)
    async with Desk(server, initialise=False) as desk:
        assert await desk.domain.link.call("EXISTS", desk.domain.keys.samples) == 0


@pytest.mark.parametrize(("kept", "maxmemory"), [(3000, 0), (400_000, 3000 * 4096)])
async def test_sample_stream_is_bounded(server: Server, kept: int, maxmemory: int) -> None:
    """Check the bound by number, and on a small server by memory; one more stream node may stay (MAXLEN ~)."""
    sample = (4, "v", "1", "kind", "x")
    async with Desk(server) as desk:
        with server.configured(maxmemory=str(maxmemory)):
            await asyncio.sleep(0.01)  # what the guard found serves for some milliseconds
            for _ in range(35):
                await desk.domain.function("sample", [desk.domain.keys.samples], kept, *(sample * 100))
        assert 3000 <= await desk.domain.link.call("XLEN", desk.domain.keys.samples) < 3200


@pytest.mark.parametrize("reason", ["store_full", "store_evicts"])
async def test_refusals_during_an_outage_are_written_afterwards(
    desk: Desk, server: Server, reason: str
) -> None:
    """Check that refusals during an outage, which error budgets need, are written after it, not into a full store."""
    queue = await desk.queue()
    await desk.put(queue, b"x")
    closed = {"maxmemory_policy": "allkeys-lru"}
    if reason == "store_full":
        closed = {"maxmemory": server.info("memory")["used_memory"]}
    with server.configured(**closed):
        await asyncio.sleep(0.01)  # what the guard found serves for some milliseconds
        for _ in range(3):
            assert [each.reason for _, each in await desk.publish(queue, b"y", b"z")] == [reason] * 2
            await write_samples(desk)
        await desk.domain.tidy(queue)
    assert await desk.domain.link.call("EXISTS", desk.domain.keys.samples) == 0
    await asyncio.sleep(0.01)
    await write_samples(desk)
    (sample,), (edge,) = await samples(desk), await samples(desk, "edge")
    assert (sample["n"], sample["in"], sample["refused_puts"]) == ("4", "1", "6")
    assert sample["refused"] == f"{reason}=6"
    assert edge["n"] == "4"
    await write_samples(desk)
    assert len(await samples(desk)) == 1


async def test_refused_samples_are_merged_into_the_next(desk: Desk, server: Server) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"x")
    await write_samples(desk)
    written_at = time.monotonic()
    await desk.put(queue, b"y")
    epoch = desk.domain.keys.epoch
    server.call("RENAME", epoch, "elsewhere")
    try:
        await write_samples(desk)
    finally:
        server.call("RENAME", "elsewhere", epoch)
    await desk.put(queue, b"z")
    since_ms = (time.monotonic() - written_at) * 1000
    await write_samples(desk)
    found, edge = await samples(desk), await samples(desk, "edge")
    assert [(sample["n"], sample["in"]) for sample in found] == [("1", "1"), ("3", "2")]
    assert [sample["n"] for sample in edge] == ["1", "3"]
    assert min(int(found[1]["ms"]), int(edge[1]["ms"])) >= since_ms - 1


async def test_samples_with_lost_reply_are_repeated_unchanged(own_server: Server) -> None:
    """Check that repeats are equal, so that readers can drop them; later activity has its own samples."""
    pipe = PipeSettings(question_timeout_s=0.3)
    async with Desk(own_server, timing=RARELY, pipe=pipe) as desk:
        desk.store.start_serving()
        queue = await desk.queue()
        await desk.put(queue, b"x")
        await write_samples(desk)  # the connection is there
        await desk.put(queue, b"y", b"z")
        own_server.stop()
        try:
            await write_samples(desk)
        finally:
            own_server.cont()
        await until(lambda: desk.pipe.trouble is None)
        await desk.put(queue, b"later")
        await write_samples(desk)
        found = await samples(desk)
        repeats = Counter((sample["process"], sample["n"]) for sample in found)
        assert {n: sample["in"] for sample in found for n in [sample["n"]]} == {"1": "1", "2": "2", "3": "1"}
        assert sorted(repeats.values()) == [1, 1, 2]
        assert [sample["n"] for sample in await samples(desk, "edge")] == ["1", "2", "2", "3"]
