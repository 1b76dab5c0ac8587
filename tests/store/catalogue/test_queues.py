"""Declaring, finding, changing, inspecting and deleting queues; handles of deleted queues stay invalid (tmq.md 5.6)."""

import asyncio
from dataclasses import replace

import pytest

from services.store import Queue, QueueSpec, StoreError
from services.store.model.errors import (
    AckLevelRefused,
    DatasetLost,
    DomainMismatch,
    QueueChanged,
    QueueExists,
    QueueNotEmpty,
    QueueUnknown,
)
from services.store.model.keys import DomainKeys, RegistryKeys
from services.store.model.queues import Listed
from tests.store.desk import Desk, bodies, numbered, until


async def names(desk: Desk) -> list[str]:
    return sorted([queue.name async for queue in desk.store.listing.queues()])


async def test_declared_queue_is_found_by_other_processes(desk: Desk) -> None:
    queue = await desk.queue(max_length=7)
    async with desk.another() as other:
        found = await other.store.catalogue.find("orders")
        assert (found.qid, found.spec, found.owner) == (queue.qid, queue.spec, "test")
        assert await names(other) == ["orders"]


async def test_queues_are_listed_by_prefix(desk: Desk) -> None:
    for name in ("rings/7/a", "rings/7/b", "rings", "*x", "[a]", "orders"):
        await desk.store.catalogue.declare(name, QueueSpec(), "test")
    for beginning, found in {"rings/": 2, "rings": 3, "*": 1, "[a": 1, "": 6, "?": 0}.items():
        assert len([queue async for queue in desk.store.listing.queues(beginning)]) == found, beginning


async def test_name_is_declared_once(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"a")
    with pytest.raises(QueueExists):
        await desk.store.catalogue.declare("orders", QueueSpec(max_length=5), "other")
    found = await desk.store.catalogue.find("orders")
    assert (found.spec, found.owner) == (queue.spec, "test")
    assert await desk.count(found) == 1


@pytest.mark.parametrize("name", ["a", "\u00e4" * 127, "\udcff\udc80", "a b:{c}", "x" * 255, '"\\', "\0"])
async def test_names_may_have_any_octets(desk: Desk, name: str) -> None:
    """Check that queues with names of any octets work (tmq.md 2.1)."""
    queue, new = await desk.store.catalogue.declare(name, QueueSpec(), "test")
    assert new
    await desk.put(queue, b"x")
    async with desk.another() as other:
        found = await other.store.catalogue.find(name)
        assert found.name == name
        assert bodies(await other.take(found)) == [b"x"]
    assert await names(desk) == [name]
    assert await desk.store.catalogue.delete(found) == 1
    with pytest.raises(QueueUnknown):
        await desk.store.catalogue.find(name)


async def test_concurrent_declarations_make_one_queue(desk: Desk) -> None:
    others = [desk.another() for _ in range(4)]
    answers = await asyncio.gather(
        *(other.store.catalogue.declare("orders", QueueSpec(domain="new"), "test") for other in others),
        return_exceptions=True,
    )
    assert sorted(type(a).__name__ for a in answers) == ["QueueExists"] * 3 + ["tuple"]
    for other in others:
        await other.store.close()


async def test_replacing_a_document_keeps_messages(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    again, new = await desk.store.catalogue.declare(
        "orders", QueueSpec(max_length=3), "operator", replace=True
    )
    assert (again.qid, new) == (queue.qid, False)
    assert len(await desk.publish(again, b"x")) == 1
    assert (await desk.store.catalogue.find("orders")).owner == "operator"
    assert await desk.drain(again) == numbered(3)


async def test_queue_cannot_change_its_domain(desk: Desk) -> None:
    """Check that a change of the domain is refused, as another domain may be on another shard."""
    queue = await desk.queue()
    with pytest.raises(DomainMismatch, match="main"):
        await desk.store.catalogue.declare(
            "orders", QueueSpec(domain="other", max_length=5), "test", replace=True
        )
    assert (await desk.store.catalogue.find("orders")).spec == queue.spec


async def test_ack_level_that_the_store_cannot_guarantee_is_refused(desk: Desk) -> None:
    with pytest.raises(AckLevelRefused, match="needs 1 replica, this store has 0"):
        await desk.store.catalogue.declare("orders", QueueSpec(ack_level="replicated:1"), "test")
    assert await names(desk) == []


async def test_deletion_removes_messages_and_dead_letters(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(40))
    got = await desk.take(queue, 20)
    await desk.reject(got[:1])
    assert await desk.store.catalogue.delete(queue) == 20
    assert await names(desk) == []
    for ask in (desk.stats(queue), desk.store.catalogue.find("orders"), desk.domain.peek(queue, 1)):
        with pytest.raises(QueueUnknown):
            await ask
    with pytest.raises(QueueUnknown):
        await desk.domain.claims.reserve(queue, "x", 1000)
    assert await desk.domain.tidy(queue) is None
    assert await desk.store.catalogue.delete(queue) == 0


async def test_deleted_queue_leaves_only_expiring_keys(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"a")
    await desk.store.catalogue.delete(queue)
    for key in queue.keys:
        assert await desk.domain.link.call("PTTL", key) != -1, key


async def test_delete_if_empty(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"a")
    with pytest.raises(QueueNotEmpty, match="holds 1 messages"):
        await desk.store.catalogue.delete(queue, if_empty=True)
    held = await desk.take(queue)
    with pytest.raises(QueueNotEmpty):
        await desk.store.catalogue.delete(queue, if_empty=True)
    await desk.reject(held)
    with pytest.raises(QueueNotEmpty, match="or dead letters"):
        await desk.store.catalogue.delete(queue, if_empty=True)
    ids = [d.id async for d in desk.dead(queue).matching()]
    await desk.dead(queue).purge(ids)
    await desk.store.catalogue.delete(queue, if_empty=True)


async def test_queue_ids_are_never_reused(desk: Desk) -> None:
    """Check that each new queue has a new id, so that handles from before a DELETE stay invalid (tmq.md 5.6)."""
    seen = set()
    for _ in range(5):
        queue = await desk.queue()
        assert queue.qid not in seen
        seen.add(queue.qid)
        await desk.put(queue, b"a")
        await desk.store.catalogue.delete(queue)
    newer = await desk.queue()
    assert await desk.count(newer) == 0
    with pytest.raises(QueueUnknown):
        await desk.count(queue)


async def test_queue_ids_are_not_reused_by_an_empty_store(desk: Desk) -> None:
    before = await desk.queue()
    await desk.domain.link.call("FLUSHALL")
    async with desk.another(initialise=True) as other:
        after = await other.queue()
        assert after.qid != before.qid


async def test_create_between_the_steps_of_a_delete_makes_a_new_queue(desk: Desk) -> None:
    """Check that a CREATE makes a new queue if a DELETE has removed the messages but not yet the name."""
    old = await desk.queue()
    await desk.put(old, b"a")
    await desk.domain.function("delete", [*old.keys, *desk.domain.keys.bindings], old.qid, "Delete")
    with pytest.raises(QueueUnknown):
        await desk.store.catalogue.find("orders")
    async with desk.another() as other:
        new = await other.queue()
        await other.put(new, b"b")
    assert new.qid != old.qid
    await desk.store.registry.forget(old)
    assert (await desk.store.catalogue.find("orders")).qid == new.qid
    with pytest.raises(QueueUnknown):
        await desk.count(old)


async def test_concurrent_deletes_and_creates_leave_a_valid_state(desk: Desk) -> None:
    async def churn(other: Desk) -> None:
        for _ in range(15):
            try:
                queue, _ = await other.store.catalogue.declare("orders", QueueSpec(), "test")
                await other.store.catalogue.delete(queue)
            except (QueueExists, QueueUnknown):
                continue

    others = [desk.another() for _ in range(3)]
    await asyncio.gather(*(churn(other) for other in others))
    for other in others:
        await other.store.close()
    registered = await desk.domain.link.call("HGET", RegistryKeys().queues, "orders")
    assert registered is None
    await desk.put(await desk.queue(), b"x")


async def test_interrupted_create_is_completed_by_another_process(desk: Desk) -> None:
    claimed, _, _ = await desk.store.registry.claim("orders", "test", QueueSpec(), replace=False)
    with pytest.raises(QueueUnknown, match="is being deleted"):
        await desk.store.catalogue.find("orders")
    queue, new = await desk.store.catalogue.declare("orders", QueueSpec(), "test")
    assert new
    assert queue.qid == claimed.qid
    await desk.put(queue, b"a")


async def test_statistics(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(50))
    held = await desk.take(queue, 20)
    await desk.release(held[:1][0].cut(5)[:1])
    stats = await desk.stats(queue)
    expected = {"ready": 35, "in_flight": 15, "bytes": 300, "returned_waiting": 5, "leases": 1}
    assert {name: stats[name] for name in expected} == expected
    assert 0 <= stats["oldest_age_ms"] < 60_000
    assert stats["reserved_by"] == ""
    await desk.drain(queue)
    empty = await desk.queue("empty")
    stats = await desk.stats(empty)
    assert set(stats.values()) == {0, ""}


async def test_peek_takes_nothing(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(100))
    await desk.take(queue, 10)
    for _ in range(2):
        assert bodies(await desk.domain.peek(queue, 50)) == numbered(50, 10)
    assert [d.lot for d in await desk.domain.peek(queue, 1)] == [b""]
    assert bodies(await desk.domain.peek(queue, 1000)) == numbered(90, 10)
    assert len(await desk.domain.peek(queue, 1000, 8)) == 1
    assert (await desk.stats(queue))["delivered"] == 10


async def test_handles_follow_changes_of_other_processes(desk: Desk) -> None:
    """Check that a changed document reaches edges with a handle, and that a deleted queue leaves the cache."""
    await desk.queue()
    async with desk.another() as edge:
        edge.store.start_serving()
        handle = await edge.store.catalogue.find("orders")

        async def changed() -> bool:
            await desk.store.catalogue.declare(
                "orders", QueueSpec(delivery="at-most-once"), "operator", replace=True
            )
            return handle.at_most_once

        await until(changed)
        assert edge.store.catalogue.known() == [handle]
        queue = await desk.store.catalogue.find("orders")
        await desk.store.catalogue.delete(queue)

        async def forgotten() -> bool:
            await desk.store.registry.publish_change("orders")
            return edge.store.catalogue.held("orders") is None

        await until(forgotten)


async def test_immediate_refusal_is_reported_immediately(desk: Desk) -> None:
    queue = await desk.queue()
    closed = desk.another()
    async with closed:
        pass
    with pytest.raises(StoreError, match="stopping"):
        await asyncio.wait_for(closed.publish(queue, b"x"), 1)
    with pytest.raises(StoreError, match="stopping"):
        await asyncio.wait_for(closed.take(queue), 1)
    (got,) = [Queue("orders", queue.qid, "main", "test", QueueSpec(ack_level="fsync"))]
    with pytest.raises(StoreError, match="stopping"):
        await asyncio.wait_for(closed.count(got), 1)


async def test_queue_in_a_lost_domain_raises_dataset_lost(desk: Desk) -> None:
    """Check that a lost domain affects no other domain (docs/store.md, "When the store has lost data")."""
    remote = {"protocol": "rqp-mca", "peers": ["west"], "queueId": 7}
    await desk.queue("near")
    far = await desk.queue("far", domain="other", remote=remote)
    await desk.store.open_domain("other").link.call("DEL", *far.keys, DomainKeys("other").epoch)
    async with desk.another() as another:
        assert (await another.store.catalogue.find("near")).name == "near"
        with pytest.raises(
            DatasetLost, match="domain 'other' was set up and is empty now: restore its shard"
        ):
            await another.store.catalogue.find("far")
        assert await another.store.catalogue.remotes() == []


async def test_only_the_owner_releases_a_queue(desk: Desk) -> None:
    """Check that former owners, and owners of an older queue with the name, cannot release it; its data stays."""
    queue = await desk.queue(max_length=7)
    await desk.put(queue, b"a")
    before = Listed(queue.name, queue.qid, "test")
    assert [one async for one in desk.store.registry.listed()] == [before]
    assert not await desk.store.catalogue.release(replace(before, owner="another"))
    assert not await desk.store.catalogue.release(replace(before, qid="q0"))
    assert await desk.store.catalogue.release(before)
    assert not await desk.store.catalogue.release(before)
    found = await desk.store.catalogue.find("orders")
    spec = QueueSpec(max_length=7, ack_level="fsync")
    assert (found.owner, found.spec, await desk.count(found)) == ("released test", spec, 1)


async def test_document_is_replaced_only_if_it_is_as_seen(desk: Desk) -> None:
    store = desk.store
    await store.catalogue.declare("orders", QueueSpec(ack_level="memory"), "test")
    seen = await store.registry.document("orders")
    assert seen is not None
    await store.catalogue.declare(
        "orders", QueueSpec(ack_level="memory", max_length=5), "test", replace=True, seen=seen
    )
    assert (await store.catalogue.find("orders")).spec.max_length == 5
    with pytest.raises(QueueChanged):
        await store.catalogue.declare(
            "orders", QueueSpec(ack_level="memory", max_length=6), "test", replace=True, seen=seen
        )
    assert (await store.catalogue.find("orders")).spec.max_length == 5
    await store.catalogue.delete(await store.catalogue.find("orders"))
    with pytest.raises(QueueChanged):
        await store.catalogue.declare(
            "orders", QueueSpec(ack_level="memory"), "test", replace=True, seen=seen
        )
    assert await store.registry.document("orders") is None
