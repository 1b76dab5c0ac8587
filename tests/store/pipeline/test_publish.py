"""Publishes: refusals per message, bounds, the store's limits, reservations (docs/store.md, tmq.md 7.2).

Every kind of refusal has its own exception and is counted by its reason.
"""

import asyncio

import pytest

from services.store import INTERNAL_CLIENT, CommitPart, Queue, QueueSpec, Source, StoreError
from services.store.model.errors import (
    AckLevelLost,
    QueueFull,
    QueuePaused,
    QueueUnknown,
    StoreEvicts,
    StoreFull,
)
from tests.servers import Server
from tests.store.desk import Desk, bodies, encode, numbered, until


async def contents(desk: Desk, queue: Queue) -> list[bytes]:
    return bodies(await desk.domain.peek(queue, 1000))


def refused(refusals: list[tuple[int, StoreError]]) -> tuple[list[int], set[type[StoreError]]]:
    return [index for index, _ in refusals], {type(why) for _, why in refusals}


async def test_run_is_stored_in_order(desk: Desk) -> None:
    queue = await desk.queue()
    run = [b"%d" % i + b"x" * size for i, size in enumerate((0, 10, 5000, 0, 4096, 100, 70_000) * 20)]
    assert await desk.publish(queue, *run) == []
    assert await desk.drain(queue) == run
    stats = await desk.stats(queue)
    assert (stats["added"], stats["bytes_in"]) == (len(run), sum(map(len, run)))


async def test_message_of_16_mib(desk: Desk) -> None:
    queue = await desk.queue()
    largest = b"x" * ((1 << 24) - 1)
    assert await desk.publish(queue, b"first", largest) == []
    assert await desk.drain(queue) == [b"first", largest]


@pytest.mark.parametrize("count", [0, 1001])
async def test_run_of_invalid_length_raises(desk: Desk, count: int) -> None:
    queue = await desk.queue()
    with pytest.raises(ValueError, match="1 to 1000 records"):
        await desk.publish(queue, *numbered(count))


async def test_first_messages_of_a_run_are_stored_in_a_nearly_full_queue(desk: Desk) -> None:
    queue = await desk.queue(max_length=40)
    assert await desk.publish(queue, *numbered(30)) == []
    assert refused(await desk.publish(queue, *numbered(70, 30))) == ([*range(10, 70)], {QueueFull})
    assert await contents(desk, queue) == numbered(40)
    assert desk.refusals == {"queue_full": 60}
    assert refused(await desk.publish(queue, b"more")) == ([0], {QueueFull})


async def test_leased_messages_count_towards_max_length(desk: Desk) -> None:
    queue = await desk.queue(max_length=2)
    await desk.put(queue, b"1", b"2")
    got = await desk.take(queue, 1)
    assert refused(await desk.publish(queue, b"3")) == ([0], {QueueFull})
    await desk.settle(got)
    await desk.put(queue, b"3")


async def test_max_bytes_bounds_octets(desk: Desk) -> None:
    queue = await desk.queue(max_bytes=10)
    assert refused(await desk.publish(queue, b"1234", b"12345", b"12")) == ([2], {QueueFull})
    await desk.put(queue, b"", b"", b"6")
    assert refused(await desk.publish(queue, b"x")) == ([0], {QueueFull})
    assert (await desk.stats(queue))["bytes"] == 10


async def test_each_connection_gets_its_own_refusals(desk: Desk) -> None:
    """Check that runs of several connections in a call get separate answers (docs/decisions/0005)."""
    queue = await desk.queue(max_length=5)
    answers = await asyncio.gather(
        *(desk.publishing(queue, *numbered(2, 2 * i), source=Source(INTERNAL_CLIENT)) for i in range(4))
    )
    assert [refused(answer)[0] for answer in answers] == [[], [], [1], [0, 1]]
    assert await contents(desk, queue) == numbered(5)


async def test_refusals_are_exact_for_alternating_sizes(desk: Desk) -> None:
    queue = await desk.queue(max_bytes=10_000)
    run = [b"%d" % i + b"x" * size for i, size in enumerate((4000, 10, 4000, 4000, 10, 4000, 10, 10))]
    accepted = set(range(len(run))) - set(refused(await desk.publish(queue, *run))[0])
    assert await contents(desk, queue) == [run[i] for i in sorted(accepted)]


async def test_paused_queue_refuses_publishes_and_takes(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    held = await desk.take(queue, 1)
    await desk.store.catalogue.declare("orders", QueueSpec(paused=True), "test", replace=True)
    assert refused(await desk.publish(queue, b"x")) == ([0], {QueuePaused})
    assert desk.refusals["queue_paused"] == 1
    assert await desk.take(queue) == []
    await desk.settle(held)
    assert await desk.count(queue) == 2
    await desk.store.catalogue.declare("orders", QueueSpec(), "test", replace=True)
    assert await desk.drain(queue) == numbered(2, 1)


async def test_deleted_queue_is_unknown(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.store.catalogue.delete(queue)
    assert refused(await desk.publish(queue, b"x", b"y")) == ([0, 1], {QueueUnknown})
    for ask in (desk.take(queue), desk.count(queue), desk.bury(queue, b"\0\0\0\0", "refused")):
        with pytest.raises(QueueUnknown):
            await ask
    assert desk.refusals == {"queue_unknown": 5}


# overflow: dead_letter_oldest


async def test_oldest_messages_of_a_full_queue_become_dead_letters(desk: Desk) -> None:
    queue = await desk.queue(max_length=50, overflow="dead_letter_oldest")
    await desk.put(queue, *numbered(50))
    await desk.put(queue, *numbered(40, 50))
    assert await contents(desk, queue) == numbered(50, 40)
    letters = [d async for d in desk.dead(queue).matching()]
    assert [d.body for d in letters] == numbered(40)
    assert {d.reason for d in letters} == {"rejected_full"}


async def test_run_longer_than_the_queue_leaves_its_last_messages(desk: Desk) -> None:
    """Check that the last messages of the run stay, independently of packing."""
    queue = await desk.queue(max_length=10, overflow="dead_letter_oldest")
    await desk.put(queue, *numbered(100))
    assert await contents(desk, queue) == numbered(10, 90)
    assert (await desk.stats(queue))["dead"] == 90


async def test_leased_messages_do_not_make_way(desk: Desk) -> None:
    queue = await desk.queue(max_length=3, overflow="dead_letter_oldest")
    await desk.put(queue, *numbered(3))
    held = await desk.take(queue, 2)
    await desk.put(queue, b"x", b"y")
    assert await contents(desk, queue) == [b"y"]
    held += await desk.take(queue)
    assert refused(await desk.publish(queue, b"z")) == ([0], {QueueFull})
    await desk.settle(held)


async def test_too_large_message_displaces_none(desk: Desk) -> None:
    queue = await desk.queue(max_bytes=100, overflow="dead_letter_oldest")
    await desk.put(queue, *numbered(10))
    assert refused(await desk.publish(queue, b"x" * 101)) == ([0], {QueueFull})
    assert await contents(desk, queue) == numbered(10)
    await desk.put(queue, b"x" * 80)
    assert await contents(desk, queue) == [*numbered(3, 7)[-3:], b"x" * 80][-4:]


# the store's own limits


async def test_store_above_75_percent_refuses_publishes_only(desk: Desk, server: Server) -> None:
    queue, probe = await desk.queue(), await desk.queue("probe")
    await desk.put(queue, *numbered(10))
    held = await desk.take(queue, 5)
    used = int(server.info("memory")["used_memory"])
    with server.configured(maxmemory=str(used)):
        assert await until(lambda: refusal(desk, probe)) is StoreFull
        await desk.settle(held)
        await desk.release(await desk.take(queue, 2))
        await desk.bury(queue, b"\0\0\0\1x", "injured")
    assert desk.refusals["store_full"] >= 1
    await until(lambda: accepted(desk, probe))
    assert await desk.count(queue) == 5


async def test_unkept_ack_level_is_refused(desk: Desk, server: Server) -> None:
    """Check that all processes refuse publishes to the queue after a probe found appendfsync changed."""
    queue = await desk.queue()
    async with desk.another() as edge:
        edge.store.start_serving()
        handle = await edge.store.catalogue.find("orders")
        await edge.put(handle, b"kept")
        with server.configured(appendfsync="everysec"):
            await desk.store.initialise()
            await until(lambda: handle.unkept)
            with pytest.raises(AckLevelLost):
                await edge.publish(handle, b"x")
            with pytest.raises(AckLevelLost):
                await edge.commit("t", CommitPart(handle, [], encode(b"y"), "t"))
            assert await edge.drain(handle) == [b"kept"]
            assert (await desk.store.catalogue.find("orders")).unkept
        await desk.store.initialise()
        await until(lambda: not handle.unkept)
        await edge.put(handle, b"z")
        assert await desk.count(queue) == 1


LEVELS = (("orders", "fsync"), ("probe", "fsync"), ("memory", "memory"))


async def test_ack_level_lost_later_is_refused(desk: Desk, server: Server) -> None:
    """Check that an fsync queue refuses publishes if the AOF is switched off, while a memory queue accepts them."""
    queue, probe, memory = [await desk.queue(name, ack_level=level) for name, level in LEVELS]
    await desk.put(queue, b"kept")
    with server.configured(appendonly="no"):
        assert await until(lambda: refusal(desk, probe)) is AckLevelLost
        assert await refusal(desk, queue) is AckLevelLost
        assert await refusal(desk, memory) is None
        assert await desk.drain(queue) == [b"kept"]
    assert desk.refusals["ack_level_lost"] >= 1
    await until(lambda: accepted(desk, queue))


async def refusal(desk: Desk, queue: Queue) -> type[StoreError] | None:
    """Return the refusal of one more message; the store checks its memory every few milliseconds only."""
    refusals = await desk.publish(queue, b"x")
    return type(refusals[0][1]) if refusals else None


async def accepted(desk: Desk, queue: Queue) -> bool:
    return await refusal(desk, queue) is None


async def test_store_with_eviction_gets_no_messages(desk: Desk, server: Server) -> None:
    queue = await desk.queue()
    with server.configured(maxmemory_policy="allkeys-lru"):
        assert await until(lambda: refusal(desk, queue)) is StoreEvicts
    assert desk.refusals["store_evicts"] >= 1
    await until(lambda: accepted(desk, queue))
