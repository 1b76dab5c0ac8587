"""Messages that can be neither put in nor buried, and queues that have gone unnoticed (rqp_mca.md 2.1, 2.2)."""

from __future__ import annotations

from services.store.model.keys import RegistryKeys
from tests.live import until
from tests.rqp.conftest import NewServer, Start
from tests.rqp.held_answers import hold_answers
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import RELIABLE, UNRELIABLE
from tests.servers import Server


async def test_unreliable_of_unknown_outcome_is_not_put_with_the_dead_letters_too(
    new_server: NewServer, start: Start
) -> None:
    """It counts as lost, and may be in the queue."""
    server = await new_server()
    edge = await start(server, request_timeout_s=0.5, store={"reply_timeout_s": 60.0})
    queue = await edge.heard_numbered("orders", 7)
    client = await edge.client()
    await client.put(7, b"one")
    server.stop()
    try:
        await client.send(client.data(7, b"two", kind=UNRELIABLE))
        await until(lambda: lost(edge) == 1)
    finally:
        server.cont()
    await client.put(7, b"three")
    assert await edge.bodies(queue) == [b"one", b"two", b"three"]
    assert await edge.dead(queue) == []
    assert edge.refusals() == {"outcome_unknown": 1}


async def test_unreliable_whose_queue_cannot_be_looked_up_is_lost_and_was_put_nowhere(
    new_server: NewServer, start: Start
) -> None:
    """Nothing was asked of the store but which queue it is: so the outcome is known."""
    server = await new_server()
    edge = await start(server, request_timeout_s=0.5, store={"reply_timeout_s": 60.0})
    queue = await edge.heard_numbered("orders", 7)
    client = await edge.client()
    server.stop()
    try:
        await client.send(client.data(7, b"one", b"two", kind=UNRELIABLE))
        await until(lambda: lost(edge) == 2)
    finally:
        server.cont()
    await client.put(7, b"three")
    assert await edge.bodies(queue) == [b"three"]
    assert edge.refusals() == {"store_unavailable": 1}


async def test_unreliable_that_no_dead_letters_take_is_lost_and_counted(
    new_server: NewServer, start: Start
) -> None:
    """The store goes away between the refusal and the dead letters."""
    server = await new_server()
    edge = await start(server, store={"patience_s": 0.2})
    await edge.heard_numbered("orders", 7, paused=True)
    await edge.heard_numbered("end", 99)
    client = await edge.client()
    assert not await client.is_available(7, 99)  # from here on both are known without asking the store
    waiting, let_go = hold_answers(edge)
    await client.send(client.data(7, b"one", b"two", kind=UNRELIABLE))
    await until(lambda: waiting)
    server.kill9()
    await until(edge.service.store.open_domain("main").pipe.gate.refuses)
    let_go()
    await until(lambda: lost(edge) == 2)
    assert len(edge.log.events("rqp_message_lost")) == 2


async def test_a_number_that_is_another_queues_by_now(server: Server, start: Start) -> None:
    """A queue has gone and nobody told us: the store says so, and what was known of its number is forgotten."""
    edge = await start(server)
    other = await edge.numbered("other", 8)
    for name, kind in (("asked", None), ("put", RELIABLE), ("put unreliable", UNRELIABLE)):
        queue = await edge.heard_numbered(name, 7)  # or it forgets in between what it knew
        client = await edge.client()
        await client.put(7, b"one")
        server.call("DEL", queue.keys[1])
        server.call("HSET", RegistryKeys().numbers, "rqp-mca 7", "other")
        if kind is not None:
            await client.send(client.data(7, b"lost, or its sender's", kind=kind))
            await until(lambda: edge.refusals()["queue_unknown"] == (1 if kind is RELIABLE else 2))  # noqa: B023
            client = await edge.client()
        else:
            assert await client.is_available(7, 8)
        await client.put(7, name.encode())
        server.call("HSET", RegistryKeys().numbers, "rqp-mca 7", name)
        await edge.tools.catalogue.delete(queue)
    assert await edge.bodies(other) == [b"asked", b"put", b"put unreliable"]
    assert lost(edge) == 1


def lost(edge: LiveEdge) -> float:
    return edge.value("penstock_rqp_lost_messages_total", protocol="rqp-mca")
