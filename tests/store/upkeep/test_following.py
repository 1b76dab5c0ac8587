"""Samples are read as they come, and back from where one began (docs/store.md, Samples)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.store.model.errors import StoreUnavailable
from services.store.model.keys import DomainKeys
from services.store.pipeline.domain import Timing
from services.store.upkeep.following import Following, Sampled
from tests.servers import Server
from tests.store.desk import Desk, until

KEY = DomainKeys("main").samples
HOUR_MS = 3_600_000


@pytest.fixture
async def desk(server: Server) -> AsyncIterator[Desk]:
    """A process that looks after the store, as edges do; a test looks when it wants to."""
    async with Desk(server, timing=Timing(sample_s=3600.0, upkeep_s=3600.0)) as desk:
        desk.store.start_serving()
        yield desk


async def rest(following: Following) -> list[Sampled]:
    """What came."""
    return await following.next(100_000)


async def all_earlier(following: Following, count: int = 1_000) -> list[Sampled]:
    """What was there, the oldest first."""
    found: list[Sampled] = []
    while page := await following.earlier(count):
        found += page
    return found[::-1]


async def test_what_edges_tell_is_followed(desk: Desk) -> None:
    queue = await desk.queue("orders \udcff")
    following = desk.store.following("main", HOUR_MS)
    assert await rest(following) == []
    await desk.put(queue, b"a", b"bb")
    before = await desk.store.now_ms()
    await desk.store.sampler.look()
    first, edge = await rest(following)
    assert (first.fields["kind"], first.fields["queue"], first.fields["in"]) == (
        "queue",
        "orders \udcff",
        "2",
    )
    assert edge.fields["kind"] == "edge"
    assert before <= first.at_ms <= await desk.store.now_ms()
    assert await rest(following) == []
    await desk.store.sampler.look()
    assert [one.fields["kind"] for one in await rest(following)] == ["edge"]


def fill(server: Server, first_ms: int, step_ms: int, number: int) -> None:
    """Samples with numbers."""
    script = (
        "for i = 0, ARGV[3] - 1 do redis.call('XADD', KEYS[1], string.format('%.0f-1', ARGV[1] + i * ARGV[2]), "
        "'n', i) end"
    )
    server.call("EVAL", script, 1, KEY, first_ms, step_ms, number)


def numbers(samples: list[Sampled]) -> list[int]:
    return [int(one.fields["n"]) for one in samples]


async def test_it_looks_back_no_further_than_it_is_told(desk: Desk, server: Server) -> None:
    now = await desk.store.now_ms()
    fill(server, now - 2 * HOUR_MS, 60_000, 120)
    found = numbers(await all_earlier(desk.store.following("main", HOUR_MS)))
    assert found == list(range(found[0], 120))
    assert found[0] in (60, 61)
    assert numbers(await all_earlier(desk.store.following("main", 10 * HOUR_MS))) == list(range(120))
    assert await all_earlier(desk.store.following("main", 0)) == []


async def test_nor_at_more_samples(desk: Desk, server: Server) -> None:
    now = await desk.store.now_ms()
    fill(server, now - HOUR_MS, 100, 5_000)
    found = numbers(await all_earlier(desk.store.following("main", 10 * HOUR_MS, 2_500)))
    assert found == list(range(2_500, 5_000))
    assert len(await all_earlier(desk.store.following("main", 10 * HOUR_MS, 5_000))) == 5_000


async def test_what_was_and_what_comes_is_read_once(desk: Desk, server: Server) -> None:
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


async def test_what_was_trimmed_meanwhile_is_passed_over(desk: Desk, server: Server) -> None:
    now = await desk.store.now_ms()
    fill(server, now - 1_000, 10, 20)
    following = desk.store.following("main", HOUR_MS)
    assert numbers(await following.earlier(2)) == [19, 18]
    fill(server, now + 1_000, 10, 20)
    server.call("XTRIM", KEY, "MAXLEN", 3)
    assert numbers(await rest(following)) == [17, 18, 19]
    assert await following.earlier(5) == []


async def test_data_that_went_back_in_time_is_followed_on(desk: Desk, server: Server) -> None:
    """A copy was restored, or another server took over whose clock is behind: what comes then is told."""
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


async def test_a_store_that_is_away_says_so_and_it_goes_on_where_it_was(own_server: Server) -> None:
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

        async def is_back() -> list[Sampled] | None:
            try:
                return await following.next()
            except StoreUnavailable:
                return None

        assert numbers(await until(is_back)) == list(range(5, 20))
