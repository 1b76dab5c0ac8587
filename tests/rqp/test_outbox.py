"""Ownership of transmission queues: one process sends each, unless it is paused (rqp_mca.md 3.2, 3.6)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from services.store import QueueSpec
from tests.live import until
from tests.rqp.conftest import NewServer, Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.peer import McaPeer, peer_settings
from tests.rqp.program import EdgeProgram
from tests.servers import Server

PATIENT = {"data_timeout_s": 20.0, "availability_timeout_s": 20.0}
SHORT = {"lease_s": 0.6, "renew_s": 0.2, "look_s": 0.5}


def owned(edge: LiveEdge) -> float:
    return edge.value("penstock_rqp_owned_queues", protocol="rqp-mca")


async def two(server: Server, start: Start, peer: McaPeer) -> tuple[LiveEdge, LiveEdge]:
    """Start two replicas on one store."""
    settings = {"mca": {"peers": peer_settings(peer), **PATIENT}, "outbox": SHORT}
    return await start(server, **settings), await start(server, **settings)


async def owner(*edges: LiveEdge) -> LiveEdge:
    await until(lambda: any(owned(edge) for edge in edges))
    (found,) = [edge for edge in edges if owned(edge)]
    return found


async def test_one_of_two_replicas_sends(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that one of two replicas sends, for as long as it lives (3.2)."""
    one, other = await two(server, start, peer)
    queue = await one.remote("away")
    await one.put(queue, b"one")
    call = await peer.reserved()
    for body in (b"one", b"two", b"three"):
        assert await call.body() == body
        call.confirm()
        await until(lambda: one.is_empty(queue))
        await one.put(queue, b"two" if body == b"one" else b"three")
    assert owned(one) + owned(other) == 1
    assert len(peer.calls) == 1


async def test_another_replica_takes_over_after_a_drain(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that another replica takes over at once after a drain (3.6).

    Messages in flight may still be confirmed.
    """
    one, other = await two(server, start, peer)
    queue = await one.remote("away")
    await one.put(queue, b"one", b"two")
    first = await owner(one, other)
    second = other if first is one else one
    call = await peer.reserved()
    assert await call.body() == b"one"
    draining = asyncio.ensure_future(first.service.stop_taking())
    await until(lambda: one.bodies(queue))  # the other message is back in its place
    call.confirm()
    await draining
    await call.ended()
    again = await peer.reserved()
    assert await again.body() == b"two"
    again.confirm()
    await until(lambda: one.is_empty(queue))
    assert owned(second) == 1


async def test_another_replica_takes_over_after_a_crash(
    new_server: NewServer, start: Start, peer: McaPeer, tmp_path: Path
) -> None:
    """Check that another replica takes over after a crash (3.2).

    The lease expires and leased messages return; those in flight are delivered twice.
    """
    server = await new_server()
    store = {"session_timeout_s": 1.0, "heartbeat_s": 0.2, "sweep_s": 0.2}
    settings = {"mca": {"peers": peer_settings(peer), **PATIENT}, "outbox": SHORT, "store": store}
    edge = await start(server, mca=PATIENT, outbox=SHORT, store=store)
    async with EdgeProgram(server.url, tmp_path, settings) as doomed:
        remote = {"protocol": "rqp-mca", "queueId": 7, "peers": ["p0"]}
        queue = await edge.declare("away", remote=remote, visibilityTimeout="100ms", paused=True)
        await edge.service.stop_taking()  # only the program remains to own it
        await edge.tools.catalogue.declare(
            "away",
            QueueSpec.model_validate({"remote": remote, "visibilityTimeout": "100ms"}),
            "test",
            replace=True,
        )
        await edge.put(queue, b"one", b"two")
        call = await peer.reserved()
        assert await call.body() == b"one"
        other = await start(server, **settings)
        await doomed.kill()
        again = await peer.reserved()
        while not await again.has_something():  # its leases have not expired yet
            again = await peer.reserved()
        for body in (b"one", b"two"):
            assert await again.body() == body
            again.confirm()
        await until(lambda: other.is_empty(queue))


async def test_paused_queue_is_given_up(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that a paused queue is given up and later resumed (3.6).

    Messages in flight may still be confirmed; others return to their places.
    """
    edge = await start(server, mca={"peers": peer_settings(peer), **PATIENT})
    queue = await edge.remote("away")
    await edge.put(queue, b"one", b"two", b"three")
    call = await peer.reserved()
    assert await call.body() == b"one"
    await edge.replace_remote("away", spec={"paused": True})
    await until(lambda: edge.bodies(queue))
    assert await edge.bodies(queue) == [b"two", b"three"]
    call.confirm()
    await call.ended()
    await until(lambda: owned(edge) == 0)
    assert (await edge.stats(queue))["in_flight"] == 0
    await edge.replace_remote("away")
    again = await peer.reserved()
    for body in (b"two", b"three"):
        assert await again.body() == body
        again.confirm()
    await until(lambda: edge.is_empty(queue))


async def test_deleted_queue_is_given_up(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that a deleted queue is given up: a new one of its name is another queue."""
    edge = await start(server, mca={"peers": peer_settings(peer), **PATIENT, "data_timeout_s": 0.3})
    queue = await edge.remote("away")
    await edge.put(queue, b"one", b"two")
    call = await peer.reserved()
    assert await call.body() == b"one"
    await edge.tools.catalogue.delete(queue)
    await call.ended()
    await until(lambda: owned(edge) == 0)
    await peer.forget()
    fresh = await edge.remote("away")
    await edge.put(fresh, b"three")
    again = await peer.reserved()
    assert await again.body() == b"three"
    again.confirm()
    await until(lambda: edge.is_empty(fresh))


async def test_changed_remote_is_followed(
    server: Server, start: Start, peer: McaPeer, other_peer: McaPeer
) -> None:
    """Check that changed numbers and peers of `remote` are followed while the edge runs."""
    edge = await start(server, mca={"peers": peer_settings(peer, other_peer), **PATIENT})
    queue = await edge.remote("away", 7, peers=["p0"])
    await edge.put(queue, b"one")
    call = await peer.reserved(7)
    assert await call.body() == b"one"
    call.confirm()
    await until(lambda: edge.is_empty(queue))
    await edge.replace_remote("away", 8, peers=["p1"])
    await call.ended()
    await edge.put(queue, b"two")
    other = await other_peer.reserved(8)
    assert await other.body() == b"two"
    other.confirm()
    await until(lambda: edge.is_empty(queue))


async def test_queue_that_is_no_longer_remote_is_given_up(
    server: Server, start: Start, peer: McaPeer
) -> None:
    edge = await start(server, mca={"peers": peer_settings(peer), **PATIENT})
    queue = await edge.remote("away")
    await until(lambda: owned(edge) == 1)
    await edge.tools.catalogue.declare("away", QueueSpec(), "test", replace=True)
    await until(lambda: owned(edge) == 0)
    await edge.put(queue, b"one")
    assert await edge.bodies(queue) == [b"one"]
    assert peer.calls == []


async def test_store_outage_longer_than_the_lease(new_server: NewServer, start: Start, peer: McaPeer) -> None:
    """Check a store outage longer than the lease.

    The owner stops before another can own the queue, and continues when the store is back.
    """
    server: Server = await new_server()
    edge = await start(
        server,
        mca={"peers": peer_settings(peer), **PATIENT},
        outbox=SHORT,
        store={"patience_s": 0.2, "reply_timeout_s": 0.2, "call_deadline_s": 0.2},
        request_timeout_s=1.0,
    )
    queue = await edge.remote("away")
    await edge.put(queue, b"one", b"two")
    call = await peer.reserved()
    assert await call.body() == b"one"
    server.stop()
    await call.ended()
    server.cont()
    again = await peer.reserved()
    for body in (b"one", b"two"):
        assert await again.body() == body
        again.confirm()
    await until(lambda: edge.is_empty(queue))
    assert edge.log.events("rqp_lost", queue="away")


async def test_condition_is_cleared_at_takeover(server: Server, start: Start) -> None:
    """Check that the condition is cleared at takeover (3.1)."""
    edge = await start(server, mca={"availability_timeout_s": 0.05})
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    await until(lambda: edge.has_condition(queue, "no_receiver"))
    await edge.replace_remote("away", spec={"paused": True})

    async def is_clear() -> bool:
        return await edge.condition(queue) == ""

    await until(is_clear)
