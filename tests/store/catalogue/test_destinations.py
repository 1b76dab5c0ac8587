"""Destinations of transmission queues: one queue for each number of a peer (docs/store.md, rqp_mca.md 2.3)."""

import json
from typing import Any

import pytest

from services.store import QueueSpec
from services.store.model.errors import NumberTaken, QueueUnknown
from tests.store.desk import Desk


def away(number: int, *peers: str, protocol: str = "rqp-mca") -> dict[str, Any]:
    field = "queueId" if protocol == "rqp-mca" else "key"
    return {"remote": {"protocol": protocol, field: number, "peers": peers}}


async def change(desk: Desk, name: str, **spec: Any) -> None:
    await desk.store.catalogue.declare(name, QueueSpec(**spec), "test", replace=True)


async def refused_to(desk: Desk, name: str, spec: dict[str, Any]) -> str:
    with pytest.raises(NumberTaken) as caught:
        await desk.queue(name, **spec)
    with pytest.raises(QueueUnknown):
        await desk.store.catalogue.find(name)
    return str(caught.value)


async def test_number_of_a_peer_is_the_destination_of_one_queue(desk: Desk) -> None:
    """Check that two queues cannot lead to one number: the peer serves one sender at a time (rqp_mca.md 2.3)."""
    await desk.queue("west", **away(7, "west", "south"))
    message = await refused_to(desk, "again", away(7, "east", "west"))
    assert message.startswith(
        "queue 'west' already leads to rqp-mca 7 at peer west, and two senders would block each other"
    )
    assert "put all messages into it" in message
    assert "penstock rqp send --reliable" in message
    assert "at peer south, and" in await refused_to(desk, "again", away(7, "south"))
    await desk.queue("elsewhere", **away(7, "east"))
    await desk.queue("of another number", **away(8, "west"))
    await desk.queue("cast 1", **away(7, "west", protocol="rqp-cast"))
    await desk.queue("cast 2", **away(7, "west", protocol="rqp-cast"))  # rqp_cast.md 4.4: senders take turns


async def test_queue_for_all_peers_claims_each_of_them(desk: Desk) -> None:
    everywhere = await desk.queue("everywhere", **away(7))
    for peers in ((), ("west",)):
        message = await refused_to(desk, "again", away(7, *peers))
        assert message.startswith("queue 'everywhere' already leads to rqp-mca 7 at every peer")
    await desk.queue("of another number", **away(77, "west"))
    await desk.store.catalogue.delete(everywhere)
    await desk.queue("west", **away(7, "west"))
    assert "at peer west, and" in await refused_to(desk, "again", away(7))


async def test_destination_is_freed_by_change_and_deletion(desk: Desk) -> None:
    queue = await desk.queue("west", **away(7, "west"))
    await change(desk, "west", **away(7, "west", "south"))
    await change(desk, "west", **away(7, "south"))
    await desk.queue("new", **away(7, "west"))
    with pytest.raises(NumberTaken):
        await change(desk, "west", **away(7))
    left = QueueSpec(**away(7, "south"), ack_level="fsync")
    assert (await desk.store.catalogue.find("west")).spec == left, "nothing of it was done"
    await desk.store.catalogue.delete(queue)
    await change(desk, "new", **away(7))
    assert await desk.store.registry.numbers() == {"to rqp-mca 7 at *": "new"}
    await change(desk, "new")
    assert await desk.store.registry.numbers() == {}


async def test_documents_without_destinations_get_them_when_declared(desk: Desk) -> None:
    """Check that two conflicting queues of an older version are both served until one is declared again."""
    queues = [await desk.queue(name) for name in ("one", "two")]
    keys = desk.store.registry.keys
    for queue in queues:
        spec = QueueSpec(**away(7, "west")).model_dump_json(by_alias=True, exclude_defaults=True)
        old = json.dumps({"qid": queue.qid, "domain": "main", "owner": "test", "spec": spec})
        await desk.domain.link.call("HSET", keys.queues, queue.name, old)
        await desk.domain.link.call("SADD", keys.remotes, queue.name)
    assert sorted(queue.name for queue in await desk.store.catalogue.leading_to("rqp-mca", 7)) == [
        "one",
        "two",
    ]
    await change(desk, "one", **away(7, "west"))
    with pytest.raises(NumberTaken, match="queue 'one' already leads to rqp-mca 7 at peer west"):
        await change(desk, "two", **away(7, "west"))
    await desk.store.catalogue.delete(queues[1])
    assert await desk.store.registry.numbers() == {"to rqp-mca 7 at west": "one"}
