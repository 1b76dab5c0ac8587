"""Numbers of queues, remote queues, and notices of changes (docs/store.md)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from services.store import Queue, QueueSpec
from services.store.catalogue import registry
from services.store.catalogue.numbers import BUSY, BUSY_S, Numbers
from services.store.catalogue.registry import EVERYTHING
from services.store.model.errors import NumberTaken, QueueUnknown
from tests.servers import Server
from tests.store.desk import Desk, until

REMOTE = {"protocol": "rqp-mca", "queueId": 7}


def mca(number: int) -> dict[str, Any]:
    return {"bindings": {"rqpMca": {"queueId": number}}}


async def change(desk: Desk, name: str, **spec: Any) -> None:
    await desk.store.catalogue.declare(name, QueueSpec(**spec), "test", replace=True)


async def test_queue_is_found_by_its_number(desk: Desk) -> None:
    queue = await desk.queue("orders", bindings={"rqpMca": {"queueId": 7}, "rqpCast": {"key": 9}})
    other = await desk.queue("ünïcode \udcff", **mca(0))
    for store in (desk.store, desk.another().store):
        assert (await store.catalogue.numbered("rqp-mca", 7)).qid == queue.qid
        assert (await store.catalogue.numbered("rqp-cast", 9)).qid == queue.qid
        assert (await store.catalogue.numbered("rqp-mca", 0)).name == other.name
    for protocol, number in (("rqp-cast", 7), ("rqp-mca", 9)):
        with pytest.raises(QueueUnknown, match=f"{protocol} {number}"):
            await desk.store.catalogue.numbered(protocol, number)


async def test_number_belongs_to_one_queue(desk: Desk) -> None:
    await desk.queue("orders", **mca(7))
    with pytest.raises(NumberTaken, match="rqp-mca 7 is the number of queue 'orders'"):
        await desk.queue("returns", **mca(7))
    with pytest.raises(QueueUnknown):
        await desk.store.catalogue.find("returns")
    await desk.queue("returns", bindings={"rqpCast": {"key": 7}, "rqpMca": {"queueId": 8}})
    with pytest.raises(NumberTaken):
        await change(desk, "returns", **mca(7))
    kept = (await desk.store.catalogue.find("returns")).spec
    assert kept.numbers() == ["rqp-mca 8", "rqp-cast 7"], "nothing of the document was done"
    assert (await desk.store.catalogue.numbered("rqp-cast", 7)).name == "returns"


async def test_number_is_freed_by_change_and_deletion(desk: Desk) -> None:
    orders = await desk.queue("orders", **mca(7))
    await change(desk, "orders", **mca(8))
    await desk.queue("returns", **mca(7))
    await desk.store.catalogue.delete(orders)
    await desk.queue("quotes", **mca(8))
    assert await desk.store.registry.numbers() == {"rqp-mca 7": "returns", "rqp-mca 8": "quotes"}
    await desk.store.catalogue.delete(await desk.store.catalogue.find("quotes"))
    assert await desk.store.registry.numbers() == {"rqp-mca 7": "returns"}
    await desk.queue("quotes", **mca(8))
    await change(desk, "quotes")
    await change(desk, "returns", domain="main")
    assert await desk.store.registry.numbers() == {}


async def test_documents_without_numbers_get_them_when_declared(desk: Desk) -> None:
    queue = await desk.queue("orders")
    keys = desk.store.registry.keys
    old = json.dumps({"qid": queue.qid, "domain": "main", "owner": "test", "spec": "{}"})
    await desk.domain.link.call("HSET", keys.queues, "orders", old)
    assert (await desk.store.catalogue.find("orders")).spec == QueueSpec(ack_level="fsync")
    await change(desk, "orders", **mca(7))
    assert (await desk.store.catalogue.numbered("rqp-mca", 7)).qid == queue.qid
    await desk.domain.link.call("HSET", keys.queues, "orders", old)
    await desk.store.catalogue.delete(queue)
    with pytest.raises(QueueUnknown):
        await desk.store.catalogue.numbered("rqp-mca", 7)
    heir = await desk.queue("returns", **mca(7))
    assert (await desk.store.catalogue.numbered("rqp-mca", 7)).qid == heir.qid


async def test_one_of_many_concurrent_claims_on_a_number_succeeds(desk: Desk) -> None:
    others = [desk.another() for _ in range(4)]
    claims = (
        other.store.catalogue.declare(f"q{index}", QueueSpec(**mca(7)), "test")
        for index, other in enumerate(others)
    )
    answers = await asyncio.gather(*claims, return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["NumberTaken"] * 3 + ["tuple"]


async def test_repeated_create_does_not_change_the_number(desk: Desk) -> None:
    """Check that a second `create` of a name changes nothing and claims no number."""
    await desk.queue("orders", **mca(7))
    with pytest.raises(Exception, match="exists already"):
        await desk.store.catalogue.declare("orders", QueueSpec(**mca(9)), "test")
    assert await desk.store.registry.numbers() == {"rqp-mca 7": "orders"}


async def test_changed_number_is_seen_after_the_notice(desk: Desk) -> None:
    old = await desk.queue("orders", **mca(7))
    async with desk.another() as edge:
        edge.store.start_serving()
        results: list[str] = []
        edge.store.catalogue.watch(results.append)
        await until(lambda: EVERYTHING in results)
        found = await edge.store.catalogue.numbered("rqp-mca", 7)
        assert edge.store.catalogue.numbers.held("rqp-mca", 7) is found
        await change(desk, "orders", **mca(8))
        await desk.queue("returns", **mca(7))
        await until(lambda: results.count("returns"))
        assert edge.store.catalogue.numbers.held("rqp-mca", 7) is None
        assert (await edge.store.catalogue.numbered("rqp-mca", 7)).name == "returns"
        assert (await edge.store.catalogue.numbered("rqp-mca", 8)).qid == old.qid


async def test_number_of_a_deleted_queue_is_unknown_after_the_notice(desk: Desk) -> None:
    queue = await desk.queue("orders", **mca(7))
    async with desk.another() as edge:
        edge.store.start_serving()
        results: list[str] = []
        edge.store.catalogue.watch(results.append)
        await until(lambda: EVERYTHING in results)
        await edge.store.catalogue.numbered("rqp-mca", 7)
        await desk.store.catalogue.delete(queue)
        await until(lambda: "orders" in results)
        assert edge.store.catalogue.numbers.held("rqp-mca", 7) is None


async def test_lookup_in_progress_during_a_change_is_not_cached() -> None:
    """Check that a lookup during a change is not cached, as its result may predate the change."""
    queue = Queue("orders", "q1", "main", "test", QueueSpec(**mca(7), ack_level="fsync"))

    async def lookup(_: str) -> Queue:
        numbers.changed()
        return queue

    numbers = Numbers(lookup, nothing_listed)
    numbers.follow(True)
    assert await numbers.ask("rqp-mca", 7) is queue
    assert numbers.held("rqp-mca", 7) is None
    await numbers.close()


async def test_nothing_is_cached_while_the_store_is_unreachable(own_server: Server) -> None:
    async with Desk(own_server) as desk:
        desk.store.start_serving()
        await desk.queue("orders", **mca(7))

        async def remembered() -> bool:
            await desk.store.catalogue.numbered("rqp-mca", 7)
            return desk.store.catalogue.numbers.held("rqp-mca", 7) is not None

        await until(remembered)
        own_server.kill9()
        await until(lambda: desk.store.catalogue.numbers.held("rqp-mca", 7) is None)
        own_server.restart()
        await until(lambda: desk.store.fault_of() is None)
        await until(remembered)


async def test_unknown_numbers_are_not_cached(desk: Desk) -> None:
    async with desk.another() as edge:
        edge.store.start_serving()
        with pytest.raises(QueueUnknown):
            await edge.store.catalogue.numbered("rqp-mca", 7)
        await desk.queue("orders", **mca(7))
        assert (await edge.store.catalogue.numbered("rqp-mca", 7)).name == "orders"


async def nothing_listed() -> frozenset[str] | None:
    return None


async def look_for_many(desk: Desk) -> None:
    strange = (desk.store.catalogue.numbered("rqp-cast", 1000 + number) for number in range(BUSY))
    assert {type(each) for each in await asyncio.gather(*strange, return_exceptions=True)} == {QueueUnknown}


def lacks(desk: Desk, number: int) -> Callable[[], Awaitable[bool]]:
    async def found() -> bool:
        await look_for_many(desk)
        return desk.store.catalogue.numbers.lacks("rqp-mca", number)

    return found


async def test_unknown_numbers_are_refused_locally_during_a_flood(desk: Desk) -> None:
    """Check that during a flood known numbers are found, and new ones after their notice."""
    await desk.queue("orders", **mca(7))
    async with desk.another() as edge:
        edge.store.start_serving()
        results: list[str] = []
        edge.store.catalogue.watch(results.append)
        await until(lambda: EVERYTHING in results)
        assert not edge.store.catalogue.numbers.lacks("rqp-mca", 8)
        await until(lacks(edge, 8))
        assert not edge.store.catalogue.numbers.lacks("rqp-mca", 7)
        assert (await edge.store.catalogue.numbered("rqp-mca", 7)).name == "orders"
        await desk.queue("returns", **mca(8))
        await until(lambda: "returns" in results)
        await look_for_many(edge)
        assert (await edge.store.catalogue.numbered("rqp-mca", 8)).name == "returns"
        await until(lacks(edge, 9))
        await asyncio.sleep(BUSY_S)
        assert not edge.store.catalogue.numbers.lacks("rqp-mca", 9), "in calm, the store is asked"


async def test_list_that_is_too_long_is_not_cached(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MAX_LISTED", 1)
    await desk.queue("orders", **mca(7))
    assert await desk.store.registry.all_numbers() == {"rqp-mca 7"}
    await desk.queue("returns", **mca(8))
    assert await desk.store.registry.all_numbers() is None


async def test_without_notices_every_number_is_looked_up(desk: Desk) -> None:
    async with desk.another() as other:
        for _ in range(3):
            await look_for_many(other)
            assert not other.store.catalogue.numbers.lacks("rqp-cast", 1000)


async def test_nothing_is_cached_without_notices(desk: Desk) -> None:
    await desk.queue("orders", **mca(7))
    async with desk.another() as other:
        await other.store.catalogue.numbered("rqp-mca", 7)
        assert other.store.catalogue.numbers.held("rqp-mca", 7) is None


async def test_remote_queues_are_listed(desk: Desk) -> None:
    async def listed(other: Desk) -> list[str]:
        return sorted(queue.name for queue in await other.store.catalogue.remotes())

    await desk.queue("here")
    await desk.queue("there", remote=REMOTE)
    gone = await desk.queue("gone", remote={**REMOTE, "queueId": 8})
    async with desk.another() as other:
        assert await listed(other) == ["gone", "there"]
        await desk.store.catalogue.delete(gone)
        assert await desk.store.registry.remotes() == ["there"]
        await change(desk, "there")
        await change(desk, "here", remote=REMOTE)
        assert await listed(other) == ["here"]
        (queue,) = await other.store.catalogue.remotes()
        assert queue is await other.store.catalogue.find("here")


async def test_watcher_is_notified_until_it_is_removed(desk: Desk) -> None:
    async with desk.another() as edge:
        edge.store.start_serving()
        results: list[str] = []
        end = edge.store.catalogue.watch(results.append)
        edge.store.catalogue.watch(lambda name: 1 // 0)  # a failing watcher must not affect the others
        await until(lambda: EVERYTHING in results)
        queue = await desk.queue("orders")
        await until(lambda: "orders" in results)
        await desk.store.catalogue.delete(queue)
        await until(lambda: results.count("orders") == 2)
        end()
        after: list[str] = []
        edge.store.catalogue.watch(after.append)
        await desk.queue("orders")
        await until(lambda: "orders" in after)
        assert results.count("orders") == 2
