"""Reading the statistics of many queues at once (docs/store.md, Counters)."""

from __future__ import annotations

import pytest

from services.store import Queue
from services.store.catalogue.bulk_stats import QUEUES_PER_CALL
from services.store.model.errors import QueueNotEmpty, StoreFault, StoreUnavailable
from services.store.upkeep.stats_poller import read_store_stats
from tests.servers import Server
from tests.store.desk import Desk, numbered, until


def exact(figures: dict[str, int]) -> dict[str, int]:
    """Return the statistics without values that depend on the time."""
    return {
        name: value for name, value in figures.items() if name not in ("oldest_age_ms", "reserved_for_ms")
    }


async def busy(desk: Desk, name: str, domain: str) -> Queue:
    """Make a queue whose statistics are all non-zero."""
    queue = await desk.queue(name, domain=domain, max_deliveries=1)
    async with desk.another(domain=domain) as own:
        await own.put(queue, *numbered(40))
        got = await own.take(queue, 9)
        one, rest = got[0].cut(1)
        await own.settle([one])
        two, rest = rest.cut(2)
        await own.release([two])
        await own.reject([rest.cut(1)[0]])
        await own.domain.claims.reserve(queue, "me", 60_000)
        fence = await own.domain.claims.own(queue, "ü", 60_000)
        assert fence
        await own.domain.claims.set_condition(queue, "bad ü", fence)
        await own.release([rest.cut(1)[1]])
    return queue


async def test_bulk_statistics_equal_those_of_each_queue(desk: Desk) -> None:
    """Check this for queues of two domains, including unused ones."""
    queues = [await busy(desk, "one", "main"), await busy(desk, "two", "elsewhere"), await desk.queue("none")]
    stats = (await desk.store.listing.stats_of(queues)).stats
    assert list(stats) != []
    for queue in queues:
        alone = await desk.stats(queue)
        assert exact(stats[queue.name]) == exact(alone)
        assert 0 <= stats[queue.name]["oldest_age_ms"] <= alone["oldest_age_ms"]
        assert 0 <= alone["reserved_for_ms"] <= stats[queue.name]["reserved_for_ms"]
    assert stats["one"]["reserved_by"] == "me"
    assert stats["one"]["condition"] == "bad ü"
    assert stats["one"]["oldest_age_ms"] >= 0
    assert stats["none"]["oldest_age_ms"] == 0


async def test_deleted_queue_is_omitted(desk: Desk) -> None:
    """Check that a deletion between listing queues and reading their statistics causes no failure."""
    queues = [await desk.queue(f"q{number}") for number in range(3)]
    await desk.store.catalogue.delete(queues[1])
    assert list((await desk.store.listing.stats_of(queues)).stats) == ["q0", "q2"]
    assert (await desk.store.listing.stats_of([])).stats == {}


async def test_many_queues_take_several_calls(desk: Desk) -> None:
    queues = [await desk.queue(f"q{number}") for number in range(2 * QUEUES_PER_CALL + 1)]
    await desk.put(queues[-1], b"x")
    stats = (await desk.store.listing.stats_of(iter(queues))).stats
    assert list(stats) == [queue.name for queue in queues]
    assert [figures["ready"] for figures in stats.values()] == [0] * 2 * QUEUES_PER_CALL + [1]


async def test_oldest_message_may_have_been_moved_out_of_the_stream(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(64))
    got = await desk.take(queue, 32)
    await desk.settle([got[0].cut(31)[0]])
    assert await desk.domain.tidy(queue, straggler_ms=0) is not None

    async def has_aged() -> bool:
        stats = (await desk.store.listing.stats_of([queue])).stats
        return int(stats["orders"]["oldest_age_ms"]) > 0

    await until(has_aged)
    assert exact((await desk.store.listing.stats_of([queue])).stats["orders"]) == exact(
        await desk.stats(queue)
    )


async def test_unreachable_store_is_the_error_of_each_queue(own_server: Server) -> None:
    async with Desk(own_server) as desk:
        queue = await desk.queue()
        own_server.kill9()
        result = await desk.store.listing.stats_of([queue])
        assert (result.stats, [type(error) for error in result.errors.values()]) == ({}, [StoreUnavailable])


async def test_damaged_queue_does_not_affect_others(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """Check this for each damaged key; the damage is logged once."""
    queues = [await busy(desk, f"q{number}", "main") for number in range(4)]
    for key in (queues[1].keys[6], queues[2].keys[1]):
        await desk.domain.link.call("SET", key, "damage")
    for _ in range(2):
        result = await desk.store.listing.stats_of(queues)
        assert list(result.stats) == ["q0", "q3"]
        assert {name: type(error) for name, error in result.errors.items()} == {
            "q1": StoreFault,
            "q2": StoreFault,
        }
        assert "WRONGTYPE" in str(result.errors["q1"])
    results = [record for record in caplog.records if getattr(record, "action", "") == "queue_unread"]
    assert sorted(name for record in results for name in record.__dict__["queues"]) == ["q1", "q2"]
    found = await read_store_stats(desk.store.registry, desk.store.listing)
    assert (found.queues.keys(), set(found.unreadable)) == ({"q0", "q3"}, {"q1", "q2"})


async def test_non_numeric_counters_are_reported(desk: Desk) -> None:
    one, other = await desk.queue("one"), await desk.queue("other")
    await desk.domain.link.call("HSET", one.keys[1], "added", "many")
    result = await desk.store.listing.stats_of([one, other])
    assert (list(result.stats), list(result.errors)) == (["other"], ["one"])
    with pytest.raises(StoreFault, match="queue 'one' is damaged in the store"):
        await desk.store.listing.stats(one)


@pytest.mark.parametrize("place", range(1, 8))
async def test_damaged_queue_can_be_deleted(desk: Desk, place: int) -> None:
    """Check this for each damaged key; a deletion that requires an empty queue is refused."""
    queue = await busy(desk, "q", "main")
    await desk.domain.link.call("SET", queue.keys[place], "damage")
    with pytest.raises(QueueNotEmpty):
        await desk.store.catalogue.delete(queue, if_empty=True)
    await desk.store.catalogue.delete(queue)
    assert not [key for key in queue.keys[2:] if await desk.domain.link.call("EXISTS", key)]
    assert await desk.queue("q")


async def test_queue_without_message_count_can_be_deleted(desk: Desk) -> None:
    queue = await desk.queue("q")
    await desk.domain.link.call("HSET", queue.keys[1], "len", "many")
    assert await desk.store.catalogue.delete(queue) == 0
