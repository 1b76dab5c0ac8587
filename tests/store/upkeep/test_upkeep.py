"""Upkeep: counters are checked against the stream in steps during traffic (docs/store.md)."""

import asyncio
import random

import pytest

from services.store import Queue
from services.store.pipeline.domain import RECONCILE_STEP
from tests.store.desk import Desk, bodies, numbered
from tests.store.pipeline.test_returns import singles

RIGHT = {"len": 0, "bytes": 0, "leased": 0}


async def tamper(desk: Desk, queue: Queue, counter: str, by: int) -> None:
    await desk.domain.link.call("HINCRBY", queue.keys[1], counter, by)


async def fill(desk: Desk, queue: Queue, entries: int) -> None:
    """Publish entries of one message each, so that a count takes several steps."""
    await asyncio.gather(*(desk.publishing(queue, b"x", origin=f"t {i}") for i in range(entries)))


@pytest.mark.parametrize(
    ("counter", "by"), [("len", 7), ("len", -3), ("bytes", 100), ("leased", 2), ("leased", -1)]
)
async def test_wrong_counter_is_reported_and_corrected(desk: Desk, counter: str, by: int) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(100))
    got = singles(await desk.take(queue, 40))
    await desk.settle(got[:10])
    await desk.release(got[10:20])
    await tamper(desk, queue, counter, by)
    assert await desk.reconcile(queue) == {**RIGHT, counter: -by}
    assert desk.refusals["counter_mismatch"] == 1
    assert await desk.reconcile(queue) == RIGHT
    stats = await desk.stats(queue)
    assert (stats["ready"], stats["in_flight"], stats["bytes"]) == (70, 20, 90 * 6)
    await desk.settle(got[20:])
    assert len(await desk.drain(queue)) == 70


async def test_right_counters_stay(desk: Desk) -> None:
    queue = await desk.queue(dead_letter={"max_length": 3})
    await desk.put(queue, *numbered(500))
    got = singles(await desk.take(queue, 200))
    await desk.settle(got[::3])
    await desk.release(got[1::3], failed=True)
    await desk.reject(got[2:50:3])
    await desk.release(await desk.take(queue, 10), to_end=True)
    assert await desk.reconcile(queue) == RIGHT
    assert desk.refusals["counter_mismatch"] == 0


async def test_empty_queue_and_queue_of_one_step(desk: Desk) -> None:
    queue = await desk.queue()
    assert await desk.reconcile(queue) == RIGHT
    await fill(desk, queue, RECONCILE_STEP)
    assert await desk.domain.tidy(queue) is None
    assert await desk.domain.tidy(queue) == RIGHT


async def test_count_is_exact_during_traffic(desk: Desk) -> None:
    """Check that a count is exact with every operation on messages between its steps."""
    queue = await desk.queue(max_deliveries=2)
    await fill(desk, queue, 1200)
    await desk.put(queue, *numbered(1600))
    rnd = random.Random(5)
    held = singles(await desk.take(queue, 700))
    for _ in range(3):
        steps = 0
        while (wrong := await desk.domain.tidy(queue, straggler_ms=-1000)) is None:
            steps += 1
            rnd.shuffle(held)
            await desk.settle(held[:60])
            await desk.release(held[60:80])
            await desk.release(held[80:100], failed=True)
            await desk.release(held[100:110], to_end=True)
            await desk.reject(held[110:115])
            held = held[115:] + singles(await desk.take(queue, 150))
            await fill(desk, queue, 40)
            ids = [d.id async for d in desk.dead(queue).matching()]
            await desk.dead(queue).redrive(ids[:3])
        assert wrong == RIGHT
        assert steps >= 2


async def test_count_is_exact_during_late_settles(desk: Desk) -> None:
    """Check that a fenced second settle of an entry does not change the count."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(64))
    await fill(desk, queue, RECONCILE_STEP)
    first, second = (await desk.take(queue, 64))[:2]
    assert await desk.domain.tidy(queue) is None  # both are counted
    await desk.settle([first])
    for _ in range(3):
        await asyncio.gather(desk.settling([first]), return_exceptions=True)
    assert await desk.domain.tidy(queue) == RIGHT
    await desk.settle([second])


async def test_compacted_entries_are_counted(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(320))
    await fill(desk, queue, RECONCILE_STEP)
    got = singles(await desk.take(queue, 320))
    await desk.settle([d for i, d in enumerate(got) if i % 32 not in (4, 31)])
    assert await desk.domain.tidy(queue, straggler_ms=-1000) is None
    assert await desk.domain.link.call("HLEN", queue.keys[7]) == 10
    await desk.settle([got[4], got[31], got[36]])
    await desk.release([got[63]])
    await desk.reject([got[68]])
    assert await desk.domain.tidy(queue) == RIGHT
    stats = await desk.stats(queue)
    assert (stats["in_flight"], stats["ready"]) == (15, RECONCILE_STEP + 1)


async def test_count_continues_in_a_new_generation(desk: Desk) -> None:
    queue = await desk.queue()
    await fill(desk, queue, RECONCILE_STEP + 10)
    assert await desk.domain.tidy(queue) is None
    dataset = desk.pipe.epoch.partition(".")[0]
    await desk.domain.link.call("SET", desk.domain.keys.epoch, f"{dataset}.2")
    async with desk.another() as other:
        await other.put(queue, b"new")
        await other.settle(await other.take(queue, 3))
        assert await other.domain.tidy(queue) == RIGHT
        assert len(bodies(await other.take(queue))) == RECONCILE_STEP + 8


async def test_age_of_the_oldest_message(desk: Desk) -> None:
    """Check the age even if all messages were returned and left the stream."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(32))
    got = singles(await desk.take(queue))
    await desk.settle(got[1:])
    await desk.domain.tidy(queue, straggler_ms=-1000)
    stats = await desk.stats(queue)
    assert stats["in_flight"] == 1
    assert 0 <= stats["oldest_age_ms"] < 60_000
    await desk.settle(got[:1])
    assert (await desk.stats(queue))["oldest_age_ms"] == 0


async def test_empty_message_leaves_a_queue_during_a_count(desk: Desk) -> None:
    """Check the count if an empty message leaves the queue in between: its 0 octets are subtracted."""
    empty = await desk.queue("empty")
    await asyncio.gather(*(desk.publishing(empty, b"", origin=f"t {i}") for i in range(RECONCILE_STEP + 1)))
    assert await desk.domain.tidy(empty) is None
    got = singles(await desk.take(empty, 3))
    await desk.settle(got[:1])
    await desk.release(got[1:2], to_end=True)
    await desk.reject(got[2:])
    while (wrong := await desk.domain.tidy(empty)) is None:
        pass
    assert wrong == RIGHT
    assert (await desk.stats(empty))["ready"] == RECONCILE_STEP - 1
