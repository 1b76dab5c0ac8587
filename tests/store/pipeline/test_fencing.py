"""Late, repeated, foreign and overlapping settles are answered LeaseLost, change nothing and are counted (store.md)."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from services.store import Delivery, Queue
from services.store.model.errors import LeaseLost, QueueUnknown
from tests.store.desk import Desk, bodies, numbered
from tests.store.pipeline.test_returns import singles

Ending = Callable[[Desk, list[Delivery]], Awaitable[None]]
ENDINGS: dict[str, Ending] = {
    "settle": lambda desk, d: desk.settle(d),
    "release": lambda desk, d: desk.release(d, failed=True),
    "release to the end": lambda desk, d: desk.release(d, to_end=True),
    "reject": lambda desk, d: desk.reject(d),
}
endings = pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
seconds = pytest.mark.parametrize("second", ENDINGS.values(), ids=ENDINGS)
WATCHED = ("ready", "in_flight", "bytes", "acked", "returned", "dead", "dead_letters", "leases")


async def watched_stats(desk: Desk, queue: Queue) -> dict[str, int]:
    stats = await desk.stats(queue)
    return {name: stats[name] for name in WATCHED}


async def lost(desk: Desk, queue: Queue, ending: Ending, deliveries: list[Delivery]) -> None:
    """Check that the operation is refused, changes nothing, and is counted here and in the store."""
    before, refused = await watched_stats(desk, queue), desk.refusals["lease_lost"]
    fenced = (await desk.stats(queue))["fenced"]
    with pytest.raises(LeaseLost):
        await ending(desk, deliveries)
    assert await watched_stats(desk, queue) == before
    assert desk.refusals["lease_lost"] > refused
    assert (await desk.stats(queue))["fenced"] == fenced + sum(d.count for d in deliveries)


@endings
@seconds
async def test_ended_delivery_cannot_end_again(desk: Desk, ending: Ending, second: Ending) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(5))
    got = singles(await desk.take(queue, 4))
    await ending(desk, got[1:2])
    await lost(desk, queue, second, got[1:2])
    await desk.settle([got[0], *got[2:]])


@endings
async def test_ended_lease_batch_is_removed(desk: Desk, ending: Ending) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(64))
    got = await desk.take(queue)
    await desk.settle(got)
    await lost(desk, queue, ending, got[:1])


@endings
async def test_another_process_cannot_end_a_delivery(desk: Desk, ending: Ending) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(5))
    got = await desk.take(queue, 3)
    async with desk.another() as other:
        await lost(other, queue, ending, got)
        held = await other.take(queue)
        await lost(desk, queue, ending, held)
        await other.settle(held)
    await desk.settle(got)


@endings
async def test_former_holder_cannot_end_a_redelivery(desk: Desk, ending: Ending) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    got = singles(await desk.take(queue))
    await desk.release([got[1]])
    async with desk.another() as other:
        (again,) = await other.take(queue)
        await lost(desk, queue, ending, [got[1]])
        await other.release([again])
        await lost(desk, queue, ending, [got[1]])
        (third,) = await other.take(queue)
        await lost(other, queue, ending, [again])
        await other.settle([third])
    await desk.settle([got[0], got[2]])


@endings
async def test_own_former_lease_does_not_count(desk: Desk, ending: Ending) -> None:
    """Check that only the newer lease is valid if a process returned a message and leased it again."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    first = singles(await desk.take(queue))
    await desk.release([first[2]])
    (second,) = await desk.take(queue)
    await lost(desk, queue, ending, [first[2]])
    await ending(desk, [second])


async def test_overlapping_mask_ends_nothing(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(32))
    (whole,) = await desk.take(queue)
    head, tail = whole.cut(10)
    await desk.settle([head])
    await lost(desk, queue, ENDINGS["settle"], [whole])
    await desk.settle([tail])


async def test_repeated_delivery_in_one_call_counts_once(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(40))
    first, _ = await desk.take(queue)
    again = await asyncio.gather(desk.settling([first]), desk.settling([first]), return_exceptions=True)
    assert [type(answer) for answer in again] == [type(None), LeaseLost]
    stats = await desk.stats(queue)
    assert (stats["acked"], stats["bytes"], stats["fenced"]) == (32, 8 * 6, 32)


async def test_settle_may_span_queues_and_repeat_messages(desk: Desk) -> None:
    one, two = await desk.queue("one"), await desk.queue("two")
    await desk.put(one, *numbered(40))
    await desk.put(two, *numbered(40))
    held = [*await desk.take(one), *await desk.take(two)]
    await desk.settle(held[1:])
    with pytest.raises(LeaseLost):
        await desk.settle([held[0], held[0]])
    assert [(await desk.stats(q))["acked"] for q in (one, two)] == [40, 40]
    assert [(await desk.stats(q))["bytes"] for q in (one, two)] == [0, 0]
    assert [(await desk.stats(q))["fenced"] for q in (one, two)] == [32, 0]


async def test_late_settle_does_not_affect_other_connections(desk: Desk) -> None:
    """Check that each settle gets its own answer if several connections share a call (tmq.md 1.2)."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(100))
    late, *good = await desk.take(queue)
    await desk.settle([late])
    ends = [desk.settling([late]), *(desk.settling([d]) for d in good)]
    answers = await asyncio.gather(*ends, return_exceptions=True)
    assert [type(answer) for answer in answers] == [LeaseLost, type(None), type(None), type(None)]


@pytest.mark.parametrize("kind", ["releasing", "rejecting"])
async def test_late_return_does_not_affect_other_connections(desk: Desk, kind: str) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(100))
    late, *good = await desk.take(queue)
    await desk.settle([late])
    how = {"reason": "refused"} if kind == "rejecting" else {}
    ends = [getattr(desk, kind)([d], **how) for d in (good[0], late, good[1], good[2])]
    answers = await asyncio.gather(*ends, return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None), LeaseLost, type(None), type(None)]


@pytest.mark.parametrize("kind", ["releasing", "rejecting"])
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_lost_lease_among_several_is_reported(desk: Desk, kind: str, place: int) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(96))
    got = await desk.take(queue)
    await desk.settle([got[place]])
    how = {"reason": "refused"} if kind == "rejecting" else {}
    with pytest.raises(LeaseLost):
        await getattr(desk, kind)(got, **how)
    assert (await desk.stats(queue))["in_flight"] == 0


@endings
async def test_leases_of_a_deleted_queue_are_lost(desk: Desk, ending: Ending) -> None:
    """Check that leases of a deleted queue are lost, also after a CREATE of the same name (tmq.md 5.6)."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    got = await desk.take(queue)
    await desk.store.catalogue.delete(queue)
    with pytest.raises(QueueUnknown):
        await ending(desk, got)
    newer = await desk.queue()
    await desk.put(newer, b"new")
    with pytest.raises(QueueUnknown):
        await ending(desk, got)
    assert bodies(await desk.take(newer)) == [b"new"]
