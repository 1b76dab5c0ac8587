"""Messages that can be neither put in nor dead-lettered, and unnoticed deletions (rqp_mca.md 2.1, 2.2)."""

from __future__ import annotations

from services.store.model.keys import RegistryKeys
from tests.live import until
from tests.rqp.conftest import NewServer, Start
from tests.rqp.held_answers import hold_answers
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import RELIABLE, UNRELIABLE
from tests.servers import Server


async def test_unreliable_message_with_unknown_outcome_is_not_dead_lettered(
    new_server: NewServer, start: Start
) -> None:
    """Check that an unreliable message with unknown outcome is counted as lost: it may be in the queue."""
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


async def test_unreliable_message_is_lost_if_its_queue_cannot_be_found(
    new_server: NewServer, start: Start
) -> None:
    """Check that an unreliable message is lost if its queue cannot be found.

    Only the look-up of the queue was asked of the store, so the outcome is known.
    """
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


async def test_unreliable_message_that_cannot_be_dead_lettered_is_counted(
    new_server: NewServer, start: Start
) -> None:
    """Check that an unreliable message that cannot be dead-lettered is counted.

    The store fails between the refusal and the dead letter.
    """
    server = await new_server()
    edge = await start(server, store={"patience_s": 0.2})
    await edge.heard_numbered("orders", 7, paused=True)
    await edge.heard_numbered("end", 99)
    client = await edge.client()
    assert not await client.is_available(7, 99)  # from here on both are cached
    waiting, let_go = hold_answers(edge)
    await client.send(client.data(7, b"one", b"two", kind=UNRELIABLE))
    await until(lambda: waiting)
    server.kill9()
    await until(edge.service.store.open_domain("main").pipe.gate.refuses)
    let_go()
    await until(lambda: lost(edge) == 2)
    assert len(edge.log.events("rqp_message_lost")) == 2


async def test_cached_number_of_a_deleted_queue_is_dropped(server: Server, start: Start) -> None:
    """Check that the cached number of a queue deleted without notification is dropped at the store's error."""
    edge = await start(server)
    other = await edge.numbered("other", 8)
    for name, kind in (("asked", None), ("put", RELIABLE), ("put unreliable", UNRELIABLE)):
        queue = await edge.heard_numbered(name, 7)  # or it drops its cache in between
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
