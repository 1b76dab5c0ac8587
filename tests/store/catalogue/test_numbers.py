"""Numbers of queues, each of one queue; queues that lead elsewhere; news of changes (docs/store.md)."""

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


async def test_a_queue_is_found_by_its_number(desk: Desk) -> None:
    queue = await desk.queue("orders", bindings={"rqpMca": {"queueId": 7}, "rqpCast": {"key": 9}})
    other = await desk.queue("ünïcode \udcff", **mca(0))
    for store in (desk.store, desk.another().store):
        assert (await store.catalogue.numbered("rqp-mca", 7)).qid == queue.qid
        assert (await store.catalogue.numbered("rqp-cast", 9)).qid == queue.qid
        assert (await store.catalogue.numbered("rqp-mca", 0)).name == other.name
    for protocol, number in (("rqp-cast", 7), ("rqp-mca", 9)):
        with pytest.raises(QueueUnknown, match=f"{protocol} {number}"):
            await desk.store.catalogue.numbered(protocol, number)


async def test_a_number_belongs_to_one_queue(desk: Desk) -> None:
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


async def test_a_number_is_free_again_when_its_queue_changes_or_goes(desk: Desk) -> None:
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


async def test_documents_of_before_there_were_numbers_get_and_lose_them(desk: Desk) -> None:
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


async def test_of_many_who_claim_a_number_at_once_one_gets_it(desk: Desk) -> None:
    others = [desk.another() for _ in range(4)]
    claims = (
        other.store.catalogue.declare(f"q{index}", QueueSpec(**mca(7)), "test")
        for index, other in enumerate(others)
    )
    answers = await asyncio.gather(*claims, return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["NumberTaken"] * 3 + ["tuple"]


async def test_a_queue_that_stays_as_it_is_keeps_its_number(desk: Desk) -> None:
    """A second `create` of the name changes nothing, and claims nothing."""
    await desk.queue("orders", **mca(7))
    with pytest.raises(Exception, match="exists already"):
        await desk.store.catalogue.declare("orders", QueueSpec(**mca(9)), "test")
    assert await desk.store.registry.numbers() == {"rqp-mca 7": "orders"}


async def test_a_changed_number_is_seen_with_the_notice(desk: Desk) -> None:
    old = await desk.queue("orders", **mca(7))
    async with desk.another() as edge:
        edge.store.start_serving()
        told: list[str] = []
        edge.store.catalogue.watch(told.append)
        await until(lambda: EVERYTHING in told)
        found = await edge.store.catalogue.numbered("rqp-mca", 7)
        assert edge.store.catalogue.numbers.held("rqp-mca", 7) is found
        await change(desk, "orders", **mca(8))
        await desk.queue("returns", **mca(7))
        await until(lambda: told.count("returns"))
        assert edge.store.catalogue.numbers.held("rqp-mca", 7) is None
        assert (await edge.store.catalogue.numbered("rqp-mca", 7)).name == "returns"
        assert (await edge.store.catalogue.numbered("rqp-mca", 8)).qid == old.qid


async def test_a_queue_that_is_gone_has_no_number_once_that_is_told(desk: Desk) -> None:
    queue = await desk.queue("orders", **mca(7))
    async with desk.another() as edge:
        edge.store.start_serving()
        told: list[str] = []
        edge.store.catalogue.watch(told.append)
        await until(lambda: EVERYTHING in told)
        await edge.store.catalogue.numbered("rqp-mca", 7)
        await desk.store.catalogue.delete(queue)
        await until(lambda: "orders" in told)
        assert edge.store.catalogue.numbers.held("rqp-mca", 7) is None


async def test_what_was_being_looked_for_when_something_changed_is_not_remembered() -> None:
    """The answer may be from before the change."""
    queue = Queue("orders", "q1", "main", "test", QueueSpec(**mca(7), ack_level="fsync"))

    async def look(_: str) -> Queue:
        numbers.changed()
        return queue

    numbers = Numbers(look, nothing_listed)
    numbers.follow(True)
    assert await numbers.ask("rqp-mca", 7) is queue
    assert numbers.held("rqp-mca", 7) is None
    await numbers.close()


async def test_nothing_is_remembered_while_the_store_is_away(own_server: Server) -> None:
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


async def test_that_there_is_none_is_not_remembered(desk: Desk) -> None:
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


async def test_while_many_are_looked_for_a_strange_number_costs_no_question(desk: Desk) -> None:
    """Those that there are are found as ever; and one that is made meanwhile, as soon as that is told."""
    await desk.queue("orders", **mca(7))
    async with desk.another() as edge:
        edge.store.start_serving()
        told: list[str] = []
        edge.store.catalogue.watch(told.append)
        await until(lambda: EVERYTHING in told)
        assert not edge.store.catalogue.numbers.lacks("rqp-mca", 8)
        await until(lacks(edge, 8))
        assert not edge.store.catalogue.numbers.lacks("rqp-mca", 7)
        assert (await edge.store.catalogue.numbered("rqp-mca", 7)).name == "orders"
        await desk.queue("returns", **mca(8))
        await until(lambda: "returns" in told)
        await look_for_many(edge)
        assert (await edge.store.catalogue.numbered("rqp-mca", 8)).name == "returns"
        await until(lacks(edge, 9))
        await asyncio.sleep(BUSY_S)
        assert not edge.store.catalogue.numbers.lacks("rqp-mca", 9), "in calm, the store is asked"


async def test_a_list_that_is_too_long_is_not_kept(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MAX_LISTED", 1)
    await desk.queue("orders", **mca(7))
    assert await desk.store.registry.all_numbers() == {"rqp-mca 7"}
    await desk.queue("returns", **mca(8))
    assert await desk.store.registry.all_numbers() is None


async def test_where_nobody_follows_the_changes_every_number_is_looked_for(desk: Desk) -> None:
    async with desk.another() as other:
        for _ in range(3):
            await look_for_many(other)
            assert not other.store.catalogue.numbers.lacks("rqp-cast", 1000)


async def test_nothing_is_remembered_where_nobody_follows_the_changes(desk: Desk) -> None:
    await desk.queue("orders", **mca(7))
    async with desk.another() as other:
        await other.store.catalogue.numbered("rqp-mca", 7)
        assert other.store.catalogue.numbers.held("rqp-mca", 7) is None


async def test_queues_that_lead_elsewhere_are_listed(desk: Desk) -> None:
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


async def test_whoever_watches_is_told_until_he_has_enough(desk: Desk) -> None:
    async with desk.another() as edge:
        edge.store.start_serving()
        told: list[str] = []
        end = edge.store.catalogue.watch(told.append)
        edge.store.catalogue.watch(lambda name: 1 // 0)  # somebody's fault is not the others'
        await until(lambda: EVERYTHING in told)
        queue = await desk.queue("orders")
        await until(lambda: "orders" in told)
        await desk.store.catalogue.delete(queue)
        await until(lambda: told.count("orders") == 2)
        end()
        after: list[str] = []
        edge.store.catalogue.watch(after.append)
        await desk.queue("orders")
        await until(lambda: "orders" in after)
        assert told.count("orders") == 2
