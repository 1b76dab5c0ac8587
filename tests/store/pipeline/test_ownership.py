"""One process at a time serves a queue, and says what is wrong with it (docs/store.md, rqp_mca.md 3.1, 3.2)."""

import pytest

from services.store import QueueSpec
from services.store.model.errors import LeaseLost, QueueUnknown
from tests.store.desk import Desk, bodies, numbered, until


async def test_one_owner_at_a_time(desk: Desk) -> None:
    queue = await desk.queue()
    assert await desk.domain.claims.own(queue, "edge 1", 60_000) == 1
    async with desk.another() as other:
        assert await other.domain.claims.own(queue, "edge 2", 60_000) is None
    assert await desk.domain.claims.own(queue, "edge 1", 60_000) == 1
    assert (await desk.stats(queue))["owned_by"] == "edge 1"


async def test_each_new_owner_has_a_higher_number(desk: Desk) -> None:
    queue = await desk.queue()
    assert await desk.domain.claims.own(queue, "edge 1", 1) == 1
    assert await until(lambda: desk.domain.claims.own(queue, "edge 2", 60_000)) == 2
    assert await desk.domain.claims.own(queue, "edge 1", 60_000) is None
    assert not await desk.domain.claims.disown(queue, "edge 1", 1)
    assert not await desk.domain.claims.disown(queue, "edge 2", 1)
    assert await desk.domain.claims.disown(queue, "edge 2", 2)
    assert (await desk.stats(queue))["owned_by"] == ""
    assert await desk.domain.claims.own(queue, "edge 1", 60_000) == 3


async def test_an_owner_that_renews_too_late_is_a_new_one(desk: Desk) -> None:
    queue = await desk.queue()
    assert await desk.domain.claims.own(queue, "edge 1", 1) == 1

    async def free() -> bool:
        return (await desk.stats(queue))["owned_by"] == ""

    await until(free)
    assert await desk.domain.claims.own(queue, "edge 1", 60_000) == 2


async def test_an_owner_keeps_nobody_from_publishing_and_taking(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.domain.claims.own(queue, "edge 1", 60_000)
    await desk.domain.claims.reserve(queue, "mca 7", 60_000)
    async with desk.another() as other:
        assert await other.publish(queue, b"x", holder="mca 7") == []
        assert await other.drain(queue) == [b"x"]


async def test_the_owner_says_what_is_wrong(desk: Desk) -> None:
    """rqp_mca.md 3.1: the queue's condition turns bad."""
    queue = await desk.queue()
    fence = await desk.domain.claims.own(queue, "edge 1", 60_000)
    assert fence is not None
    assert await desk.domain.claims.set_condition(queue, "keiner antwortet: Ä\udcff", fence)
    assert (await desk.stats(queue))["condition"] == "keiner antwortet: Ä?"
    await desk.domain.claims.disown(queue, "edge 1", fence)
    assert (await desk.stats(queue))["condition"], "it is not better because nobody looks after it"
    newer = await desk.domain.claims.own(queue, "edge 2", 60_000)
    assert newer is not None
    assert not await desk.domain.claims.set_condition(queue, "", fence), (
        "who was the owner before says nothing any more"
    )
    assert await desk.domain.claims.set_condition(queue, "", newer)
    assert (await desk.stats(queue))["condition"] == ""


async def test_a_queue_that_leads_nowhere_any_more_has_no_condition(desk: Desk) -> None:
    remote = {"protocol": "rqp-mca", "queueId": 7}
    queue = await desk.queue(remote=remote)
    fence = await desk.domain.claims.own(queue, "edge 1", 60_000)
    assert fence is not None
    await desk.domain.claims.set_condition(queue, "nobody has queue 7", fence)
    await desk.store.catalogue.declare("orders", QueueSpec(remote=remote, max_length=5), "test", replace=True)
    assert (await desk.stats(queue))["condition"] == "nobody has queue 7"
    await desk.store.catalogue.declare("orders", QueueSpec(), "test", replace=True)
    assert (await desk.stats(queue))["condition"] == ""


async def test_a_queue_that_is_gone_is_owned_by_nobody(desk: Desk) -> None:
    queue = await desk.queue()
    fence = await desk.domain.claims.own(queue, "edge 1", 60_000)
    assert fence == 1
    await desk.store.catalogue.delete(queue)
    with pytest.raises(QueueUnknown):
        await desk.domain.claims.own(queue, "edge 1", 60_000)
    assert not await desk.domain.claims.set_condition(queue, "late", fence)
    assert not await desk.domain.claims.disown(queue, "edge 1", fence)
    assert await desk.domain.link.call("HGET", queue.keys[1], "condition") is None


async def test_an_owner_that_begins_anew_reclaims_what_others_had_leased(desk: Desk) -> None:
    """Whoever owned it before may have died with it: its order is the old one, and nothing counts as failed."""
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


async def test_only_the_latest_owner_reclaims(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"a")
    assert await desk.domain.claims.own(queue, "me", 1) == 1
    held = await desk.take(queue)
    assert await until(lambda: desk.domain.claims.own(queue, "another", 60_000)) == 2
    assert await desk.domain.claims.reclaim(queue, 1) is None
    await desk.settle(held)
    assert await desk.domain.claims.reclaim(queue, 2) == 0
