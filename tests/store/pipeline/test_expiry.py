"""Message TTL: expired messages become dead letters (docs/store.md).

Messages expire by a TTL of 1 ms, so tests do not sleep, except where younger messages must stay.
"""

from services.store import Queue, QueueSpec
from tests.store.desk import Desk, bodies, numbered, until
from tests.store.pipeline.test_returns import singles

OLD = QueueSpec(message_ttl="1ms")
YOUNGER_MS = 1000  # enough for a call of a busy machine


async def age(desk: Desk, queue: Queue) -> None:
    """Expire everything in the queue, and what comes later."""
    await desk.store.catalogue.declare(queue.name, OLD, "test", replace=True)
    start = await desk.store.now_ms()

    async def passed() -> bool:
        return await desk.store.now_ms() > start + 1

    await until(passed)


async def expired(desk: Desk, queue: Queue) -> list[bytes]:
    return [d.body async for d in desk.dead(queue).matching() if d.reason == "expired"]


async def test_take_skips_expired_messages(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(100))
    await age(desk, queue)
    assert await desk.take(queue) == []
    assert await expired(desk, queue) == numbered(100)
    stats = await desk.stats(queue)
    assert (stats["expired"], stats["dead"], stats["ready"], stats["bytes"]) == (100, 100, 0, 0)


async def test_upkeep_expires_messages(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(100))
    await age(desk, queue)
    await desk.domain.tidy(queue)
    assert await expired(desk, queue) == numbered(100)


async def test_messages_within_their_ttl_stay(desk: Desk) -> None:
    queue = await desk.queue(message_ttl="1h")
    await desk.put(queue, *numbered(10))
    await desk.domain.tidy(queue)
    assert bodies(await desk.take(queue)) == numbered(10)


async def test_take_continues_after_expired_messages(desk: Desk) -> None:
    """Check that a call skips at most 1,000 expired messages, and that the next one continues."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(2500))
    await age(desk, queue)
    answers = []
    for _ in range(3):
        desk.pipe.messages.take(desk.source, queue, 10, lambda got, more: answers.append((got, more)))
        await desk.count(queue)
    assert answers[0] == ([], True)
    assert answers[-1] == ([], False)
    assert (await desk.stats(queue))["expired"] == 2500


async def test_returned_messages_expire_and_leased_ones_do_not(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(40))
    got = singles(await desk.take(queue, 36))
    await desk.release([got[3], got[33]], failed=True)
    await age(desk, queue)
    assert await desk.take(queue) == []
    letters = [d async for d in desk.dead(queue).matching()]
    assert [d.body for d in letters] == [b"m00003", b"m00033", *numbered(4, 36)]
    assert [(d.acquired, d.failed) for d in letters[:3]] == [(1, 1), (1, 1), (0, 0)]
    await desk.settle([d for i, d in enumerate(got) if i not in (3, 33)])
    stats = await desk.stats(queue)
    assert (stats["acked"], stats["expired"], stats["bytes"], stats["leases"]) == (34, 6, 0, 0)


async def test_messages_returned_to_the_end_expire_with_their_counts(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    got = singles(await desk.take(queue))
    await desk.release(got[:2], failed=True, to_end=True)
    await age(desk, queue)
    await desk.domain.tidy(queue)
    letters = [d async for d in desk.dead(queue).matching()]
    assert [(d.body, d.acquired, d.failed) for d in letters] == [(b"m00000", 1, 1), (b"m00001", 1, 1)]
    await desk.settle(got[2:])
    assert (await desk.stats(queue))["in_flight"] == 0


async def test_expired_messages_between_others(desk: Desk) -> None:
    """Check that takes skip expired messages among younger ones, as messages returned to the end keep their age."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    old = singles(await desk.take(queue))
    start = await desk.store.now_ms()

    async def later() -> bool:
        return await desk.store.now_ms() > start + YOUNGER_MS

    await until(later)
    await desk.put(queue, b"young 1")
    await desk.release(old[:1], to_end=True)
    await desk.put(queue, b"young 2")
    await desk.release(old[1:], to_end=True)
    await desk.put(queue, b"young 3")
    # the old ones are older than that, and the young ones still have YOUNGER_MS to live
    ttl = QueueSpec(message_ttl=f"{await desk.store.now_ms() - start}ms")
    await desk.store.catalogue.declare(queue.name, ttl, "test", replace=True)
    got = await desk.take(queue)
    assert bodies(got) == [b"young 1", b"young 2", b"young 3"]
    assert sorted(await expired(desk, queue)) == numbered(3)
    await desk.release(got[1:2])
    await desk.settle([got[0], got[2]])
    assert bodies(await desk.domain.peek(queue, 10)) == [b"young 2"]
    assert (await desk.stats(queue))["leases"] == 0


async def test_counters_stay_right_during_expiry_and_traffic(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(70))
    held = await desk.take(queue, 40)
    await age(desk, queue)
    await desk.publish(queue, b"x")
    await desk.take(queue)
    await desk.settle(held)
    assert await desk.reconcile(queue) == {"len": 0, "bytes": 0, "leased": 0}
