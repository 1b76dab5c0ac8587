"""Ownership of transmission queues, its loss and its takeover (rqp_mca.md 3.2)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from protos.rqp_mca import QueueConfirm
from services.rqp.mca import prefetch
from services.rqp.mca.prefetch import Prefetch
from services.store import Queue
from services.store.pipeline.async_client import AsyncClient
from services.store.pipeline.claims import Claims
from services.store.pipeline.domain import Domain
from services.store.timeouts import StoreTimeouts
from tests.live import until
from tests.rqp.conftest import NewServer, Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.peer import McaPeer, peer_settings, take_one
from tests.rqp.program import EdgeProgram
from tests.servers import Server

PATIENT = {"data_timeout_s": 20.0, "availability_timeout_s": 20.0}


def owned(edge: LiveEdge) -> float:
    return edge.value("penstock_rqp_owned_queues", protocol="rqp-mca")


async def test_owner_stops_before_its_lease_expires(
    server: Server, start: Start, peer: McaPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an owner closes its connections before its lease expires, so that late confirmations do not count."""
    outbox = {"lease_s": 3.0, "renew_s": 0.3, "look_s": 0.5}
    settings = {"mca": {"peers": peer_settings(peer), **PATIENT}, "outbox": outbox}
    first = await start(server, **settings)
    queue = await first.remote("away")
    await first.put(queue, b"one")
    call = await peer.reserved()
    assert await call.body() == b"one"
    own = Claims.own

    async def hang(self: Domain, queue: Queue, owner: str, ttl_ms: int) -> int | None:
        if owner.startswith(first.service.name):
            await asyncio.Event().wait()
        return await own(self, queue, owner, ttl_ms)

    monkeypatch.setattr(Claims, "own", hang)
    second = await start(server, **settings)
    await until(lambda: owned(second))
    assert owned(first) == 0
    assert call.is_over.is_set()
    again = await peer.reserved()
    assert await again.body() == b"one"
    again.confirm()
    await until(lambda: second.is_empty(queue))


async def test_reacquired_ownership_starts_over(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that reacquired ownership starts over: another process may have owned the queue.

    Messages in flight are given up.
    """
    settings = {"lease_s": 15.0, "renew_s": 0.2, "look_s": 30.0}
    edge = await start(server, mca={"peers": peer_settings(peer), **PATIENT}, outbox=settings)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call = await peer.reserved()
    assert await call.body() == b"one"
    await edge.tools.get_domain(queue.domain).link.call("HSET", queue.keys[1], "own_until", 0)
    await call.ended()
    assert len(edge.log.events("rqp_lost", queue="away")) == 1
    again = await peer.reserved()
    assert await again.body() == b"one"
    again.confirm()
    await until(lambda: edge.is_empty(queue))


async def test_messages_of_the_previous_owner_are_sent_first(
    new_server: NewServer, start: Start, peer: McaPeer, tmp_path: Path
) -> None:
    """Check that messages of the previous owner are sent first.

    It was killed, and another owns the queue before its leases have expired.
    """
    server = await new_server()
    store = {"session_timeout_s": 2.0, "heartbeat_s": 0.2, "sweep_s": 0.2}
    outbox = {"lease_s": 0.6, "renew_s": 0.2, "look_s": 0.5}
    settings: dict[str, Any] = {
        "mca": {"peers": peer_settings(peer), **PATIENT},
        "outbox": outbox,
        "store": store,
    }
    bodies = [b"%03d" % number for number in range(2 * prefetch.LEAST_AHEAD)]
    edge = await start(server, mca=PATIENT, outbox=outbox, store=store)
    async with EdgeProgram(server.url, tmp_path, settings) as doomed:
        await edge.service.stop_taking()  # only the program remains to own it
        queue = await edge.remote("away", peers=["p0"], spec={"visibilityTimeout": "100ms"})
        await edge.put(queue, *bodies)
        assert await (await peer.reserved()).body() == bodies[0]
        await until(lambda: leases(edge, queue))
        await doomed.kill()
    await start(server, **settings)
    call = await peer.reserved()
    for body in bodies:
        assert await call.body() == body
        call.confirm()
    await until(lambda: edge.is_empty(queue))


async def leases(edge: LiveEdge, queue: Queue) -> bool:
    """Return whether more than the message in flight is leased."""
    return bool((await edge.stats(queue))["in_flight"] > 1)


async def test_leased_octets_are_bounded(
    server: Server, start: Start, peer: McaPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that leased octets are bounded by 4 MiB, here less, however few messages that is (docs/rqp-mca.md)."""
    monkeypatch.setattr(prefetch, "MAX_BYTES", 64 << 10)
    held: list[int] = []
    take = Prefetch.take

    async def noting(self: Prefetch, want: int) -> Any:
        held.append(self.leased.bytes)
        return await take(self, want)

    monkeypatch.setattr(Prefetch, "take", noting)
    edge = await start(server, mca={"peers": peer_settings(peer), **PATIENT})
    queue = await edge.remote("away")
    bodies = [b"%03d" % number + bytes(16 << 10) for number in range(2 * prefetch.LEAST_AHEAD)]
    await edge.put(queue, *bodies)
    call = await peer.reserved()
    for body in bodies:
        assert await call.body() == body
        call.confirm()
    await until(lambda: edge.is_empty(queue))
    assert len(held) > 1
    assert max(held) < 64 << 10


async def test_wait_for_foreign_leases_is_bounded(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that the wait for foreign leases is bounded by the time in which leases of dead processes expire.

    A client leased a message as from any queue.
    """
    waits = {"session_timeout_s": 2.0, "heartbeat_s": 0.2, "sweep_s": 0.1}
    idle = await start(server, store=waits)
    await idle.service.stop_taking()
    queue = await idle.remote("away", spec={"visibilityTimeout": "100ms"})
    await idle.put(queue, b"one", b"two")
    holder = StoreTimeouts(**waits).store(server.url, "holder", 30.0, lambda reason, number: None)
    try:
        client = AsyncClient(holder.open_domain(queue.domain).pipe)
        held = await client.take(queue, 1)
        edge = await start(server, mca={"peers": peer_settings(peer), **PATIENT}, store=waits)
        await take_one(await peer.reserved(), b"two")
        await client.settle(held)
        await until(lambda: edge.is_empty(queue))
    finally:
        await holder.close()


async def test_unsent_output_is_dropped_when_the_ownership_is_lost(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that unsent output is dropped when the ownership is lost.

    A peer that reads late gets no whole message of the former owner.
    """
    outbox = {"lease_s": 15.0, "renew_s": 0.2, "look_s": 30.0}
    edge = await start(server, mca={"peers": peer_settings(peer), **PATIENT}, outbox=outbox)
    queue = await edge.remote("away", maxMessageBytes=15 << 20)
    body = bytes(12 << 20)
    await edge.put(queue, body)
    call = await peer.requested()
    await call.stop_reading()
    call.say(QueueConfirm(7))
    await until(lambda: leased_and_blocked(edge))
    await edge.tools.get_domain(queue.domain).link.call("HSET", queue.keys[1], "own_until", 0)
    await until(lambda: edge.log.events("rqp_lost", queue="away"))
    assert await call.rest() < len(body)


def leased_and_blocked(edge: LiveEdge) -> bool:
    """Return whether output waits in the edge: the kernel's buffers do not hold it all."""
    return edge.output.total > 0
