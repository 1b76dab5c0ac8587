"""Ownership: one process at a time serves a queue and sets its condition (docs/store.md, rqp_mca.md 3.1, 3.2)."""

import pytest

from services.store import QueueSpec
from services.store.model.errors import LeaseLost, QueueUnknown
from tests.store.desk import Desk, bodies, numbered, until


async def test_queue_has_one_owner_at_a_time(desk: Desk) -> None:
    queue = await desk.queue()
    assert await desk.domain.claims.own(queue, "edge 1", 60_000) == 1
    async with desk.another() as other:
        assert await other.domain.claims.own(queue, "edge 2", 60_000) is None
    assert await desk.domain.claims.own(queue, "edge 1", 60_000) == 1
    assert (await desk.stats(queue))["owned_by"] == "edge 1"


async def test_new_owner_gets_a_higher_fencing_token(desk: Desk) -> None:
    queue = await desk.queue()
    assert await desk.domain.claims.own(queue, "edge 1", 1) == 1
    assert await until(lambda: desk.domain.claims.own(queue, "edge 2", 60_000)) == 2
    assert await desk.domain.claims.own(queue, "edge 1", 60_000) is None
    assert not await desk.domain.claims.disown(queue, "edge 1", 1)
    assert not await desk.domain.claims.disown(queue, "edge 2", 1)
    assert await desk.domain.claims.disown(queue, "edge 2", 2)
    assert (await desk.stats(queue))["owned_by"] == ""
    assert await desk.domain.claims.own(queue, "edge 1", 60_000) == 3


async def test_late_renewal_gets_a_new_fencing_token(desk: Desk) -> None:
    queue = await desk.queue()
    assert await desk.domain.claims.own(queue, "edge 1", 1) == 1

    async def free() -> bool:
        return (await desk.stats(queue))["owned_by"] == ""

    await until(free)
    assert await desk.domain.claims.own(queue, "edge 1", 60_000) == 2


async def test_ownership_does_not_block_publishes_and_takes(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.domain.claims.own(queue, "edge 1", 60_000)
    await desk.domain.claims.reserve(queue, "mca 7", 60_000)
    async with desk.another() as other:
        assert await other.publish(queue, b"x", holder="mca 7") == []
        assert await other.drain(queue) == [b"x"]


async def test_owner_sets_the_condition(desk: Desk) -> None:
    """Check that only the owner sets the queue's condition (rqp_mca.md 3.1)."""
    queue = await desk.queue()
    fence = await desk.domain.claims.own(queue, "edge 1", 60_000)
    assert fence is not None
    assert await desk.domain.claims.set_condition(queue, "keiner antwortet: Ä\udcff", fence)
    assert (await desk.stats(queue))["condition"] == "keiner antwortet: Ä?"
    await desk.domain.claims.disown(queue, "edge 1", fence)
    assert (await desk.stats(queue))["condition"], "the condition stays without an owner"
    newer = await desk.domain.claims.own(queue, "edge 2", 60_000)
    assert newer is not None
    assert not await desk.domain.claims.set_condition(queue, "", fence), (
        "who was the owner before says nothing any more"
    )
    assert await desk.domain.claims.set_condition(queue, "", newer)
    assert (await desk.stats(queue))["condition"] == ""


async def test_condition_ends_with_the_binding(desk: Desk) -> None:
    remote = {"protocol": "rqp-mca", "queueId": 7}
    queue = await desk.queue(remote=remote)
    fence = await desk.domain.claims.own(queue, "edge 1", 60_000)
    assert fence is not None
    await desk.domain.claims.set_condition(queue, "no machine has queue 7", fence)
    await desk.store.catalogue.declare("orders", QueueSpec(remote=remote, max_length=5), "test", replace=True)
    assert (await desk.stats(queue))["condition"] == "no machine has queue 7"
    await desk.store.catalogue.declare("orders", QueueSpec(), "test", replace=True)
    assert (await desk.stats(queue))["condition"] == ""


async def test_deleted_queue_cannot_be_owned(desk: Desk) -> None:
    queue = await desk.queue()
    fence = await desk.domain.claims.own(queue, "edge 1", 60_000)
    assert fence == 1
    await desk.store.catalogue.delete(queue)
    with pytest.raises(QueueUnknown):
        await desk.domain.claims.own(queue, "edge 1", 60_000)
    assert not await desk.domain.claims.set_condition(queue, "late", fence)
    assert not await desk.domain.claims.disown(queue, "edge 1", fence)
    assert await desk.domain.link.call("HGET", queue.keys[1], "condition") is None


async def test_new_owner_reclaims_leased_messages(desk: Desk) -> None:
    """Check that reclaimed messages keep their order and do not count as failed."""
    queue = await desk.queue(max_deliveries=1)
    await desk.put(queue, *numbered(100))
    async with desk.another() as other:
        await other.settle((await other.take(queue, 40))[:1])
        await other.release(await other.take(queue, 10))
        held = await other.take(queue, 30)
        fence = await desk.domain.claims.own(queue, "me", 60_000)
        assert fence is not None
        assert await desk.domain.claims.reclaim(queue, fence) == 38
        with pytest.raises(LeaseLost):
            await other.settle(held)
        assert bodies(await desk.take(queue, 100)) == numbered(68, first=32)
    stats = await desk.stats(queue)
    assert (stats["in_flight"], stats["dead"]) == (68, 0)
    assert await desk.domain.link.call("SMEMBERS", desk.domain.keys.lots(other.pipe.session)) == []


async def test_former_owner_cannot_reclaim(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"a")
    assert await desk.domain.claims.own(queue, "me", 1) == 1
    held = await desk.take(queue)
    assert await until(lambda: desk.domain.claims.own(queue, "another", 60_000)) == 2
    assert await desk.domain.claims.reclaim(queue, 1) is None
    await desk.settle(held)
    assert await desk.domain.claims.reclaim(queue, 2) == 0
