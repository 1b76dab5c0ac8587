"""Samples are read as they come, and backwards from the start (docs/store.md, Samples)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.store.model.errors import StoreUnavailable
from services.store.model.keys import DomainKeys
from services.store.pipeline.domain import Timing
from services.store.upkeep.sample_reader import SampleReader, StoredSample
from tests.servers import Server
from tests.store.desk import Desk, until

KEY = DomainKeys("main").samples
HOUR_MS = 3_600_000


@pytest.fixture
async def desk(server: Server) -> AsyncIterator[Desk]:
    """Yield a process with upkeep, as an edge, which writes samples on request."""
    async with Desk(server, timing=Timing(sample_s=3600.0, upkeep_s=3600.0)) as desk:
        desk.store.start_serving()
        yield desk


async def rest(following: SampleReader) -> list[StoredSample]:
    """Return the new samples."""
    return await following.next(100_000)


async def all_earlier(following: SampleReader, count: int = 1_000) -> list[StoredSample]:
    """Return the earlier samples, the oldest first."""
    found: list[StoredSample] = []
    while page := await following.earlier(count):
        found += page
    return found[::-1]


async def test_new_samples_are_read(desk: Desk) -> None:
    queue = await desk.queue("orders \udcff")
    following = desk.store.following("main", HOUR_MS)
    assert await rest(following) == []
    await desk.put(queue, b"a", b"bb")
    before = await desk.store.now_ms()
    await desk.store.sampler.write()
    first, edge = await rest(following)
    assert (first.fields["kind"], first.fields["queue"], first.fields["in"]) == (
        "queue",
        "orders \udcff",
        "2",
    )
    assert edge.fields["kind"] == "edge"
    assert before <= first.at_ms <= await desk.store.now_ms()
    assert await rest(following) == []
    await desk.store.sampler.write()
    assert [one.fields["kind"] for one in await rest(following)] == ["edge"]


def fill(server: Server, first_ms: int, step_ms: int, number: int) -> None:
    """Write numbered samples."""
    script = (
        "for i = 0, ARGV[3] - 1 do redis.call('XADD', KEYS[1], string.format('%.0f-1', ARGV[1] + i * ARGV[2]), "
        "'n', i) end"
    )
    server.call("EVAL", script, 1, KEY, first_ms, step_ms, number)


def numbers(samples: list[StoredSample]) -> list[int]:
    return [int(one.fields["n"]) for one in samples]


async def test_backward_read_is_bounded_by_time(desk: Desk, server: Server) -> None:
    now = await desk.store.now_ms()
    fill(server, now - 2 * HOUR_MS, 60_000, 120)
    found = numbers(await all_earlier(desk.store.following("main", HOUR_MS)))
    assert found == list(range(found[0], 120))
    assert found[0] in (60, 61)
    assert numbers(await all_earlier(desk.store.following("main", 10 * HOUR_MS))) == list(range(120))
    assert await all_earlier(desk.store.following("main", 0)) == []


async def test_backward_read_is_bounded_by_number(desk: Desk, server: Server) -> None:
    now = await desk.store.now_ms()
    fill(server, now - HOUR_MS, 100, 5_000)
    found = numbers(await all_earlier(desk.store.following("main", 10 * HOUR_MS, 2_500)))
    assert found == list(range(2_500, 5_000))
    assert len(await all_earlier(desk.store.following("main", 10 * HOUR_MS, 5_000))) == 5_000


async def test_earlier_and_new_samples_are_read_once(desk: Desk, server: Server) -> None:
    now = await desk.store.now_ms()
    fill(server, now - 1_000, 10, 25)
    following = desk.store.following("main", HOUR_MS)
    assert numbers(await following.earlier(10)) == list(range(24, 14, -1))
    fill(server, now + 1_000, 10, 25)
    assert numbers(await following.next(10)) == list(range(10))
    assert numbers(await following.earlier(10)) == list(range(14, 4, -1))
    assert numbers(await rest(following)) == list(range(10, 25))
    assert numbers(await following.earlier(10)) == list(range(4, -1, -1))
    assert await following.earlier(10) == []
    assert await following.next(10) == []


async def test_trimmed_samples_are_skipped(desk: Desk, server: Server) -> None:
    now = await desk.store.now_ms()
    fill(server, now - 1_000, 10, 20)
    following = desk.store.following("main", HOUR_MS)
    assert numbers(await following.earlier(2)) == [19, 18]
    fill(server, now + 1_000, 10, 20)
    server.call("XTRIM", KEY, "MAXLEN", 3)
    assert numbers(await rest(following)) == [17, 18, 19]
    assert await following.earlier(5) == []


async def test_reader_continues_after_data_loss(desk: Desk, server: Server) -> None:
    """Check that new samples are read after a restored copy or a failover to a slow clock."""
    now = await desk.store.now_ms()
    following = desk.store.following("main", HOUR_MS)
    assert await rest(following) == []
    fill(server, now + HOUR_MS, 10, 5)
    assert len(await rest(following)) == 5
    server.call("DEL", KEY)
    assert await rest(following) == []
    fill(server, now, 10, 3)
    await following.next()
    fill(server, now + 1_000, 10, 2)
    assert numbers(await rest(following)) == [0, 1]


async def test_unavailable_store_raises_and_reading_continues(own_server: Server) -> None:
    async with Desk(own_server) as desk:
        following = desk.store.following("main", HOUR_MS)
        assert await following.next(5) == []
        fill(own_server, await desk.store.now_ms() + 1_000, 10, 20)
        assert len(await following.next(5)) == 5
        own_server.kill9()
        with pytest.raises(StoreUnavailable):
            await following.next()
        with pytest.raises(StoreUnavailable):
            await following.earlier()
        own_server.restart()

        async def is_back() -> list[StoredSample] | None:
            try:
                return await following.next()
            except StoreUnavailable:
                return None

        assert numbers(await until(is_back)) == list(range(5, 20))
