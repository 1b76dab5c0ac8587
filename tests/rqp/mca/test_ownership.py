"""Who owns a transmission queue, until when, and what is sent first by whom takes it over (rqp_mca.md 3.2)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from protos.rqp_mca import QueueConfirm
from services.rqp.mca import feed
from services.rqp.mca.feed import Feed
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


async def test_who_cannot_renew_stops_before_another_may_own(
    server: Server, start: Start, peer: McaPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections are closed by then: nothing that it had sent is confirmed to it any more."""
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


async def test_an_ownership_that_was_lost_in_between_is_another_one(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Renewed too late: somebody else may have had it. What is out is given up, and all begins anew."""
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


async def test_what_the_one_before_had_taken_is_sent_first(
    new_server: NewServer, start: Start, peer: McaPeer, tmp_path: Path
) -> None:
    """Killed, it gives nothing back: it is owned by another before what it had leased has been swept."""
    server = await new_server()
    store = {"session_timeout_s": 2.0, "heartbeat_s": 0.2, "sweep_s": 0.2}
    outbox = {"lease_s": 0.6, "renew_s": 0.2, "look_s": 0.5}
    settings: dict[str, Any] = {
        "mca": {"peers": peer_settings(peer), **PATIENT},
        "outbox": outbox,
        "store": store,
    }
    bodies = [b"%03d" % number for number in range(2 * feed.LEAST_AHEAD)]
    edge = await start(server, mca=PATIENT, outbox=outbox, store=store)
    async with EdgeProgram(server.url, tmp_path, settings) as doomed:
        await edge.service.stop_taking()  # only the program is left to own it
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
    """Whether more is taken than is out."""
    return bool((await edge.stats(queue))["in_flight"] > 1)


async def test_no_more_is_taken_ahead_than_its_octets_allow(
    server: Server, start: Start, peer: McaPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/rqp.md: 4 MiB, here less: however few messages that are."""
    monkeypatch.setattr(feed, "MAX_BYTES", 64 << 10)
    held: list[int] = []
    take = Feed.take

    async def noting(self: Feed, want: int) -> Any:
        held.append(self.line.bytes)
        return await take(self, want)

    monkeypatch.setattr(Feed, "take", noting)
    edge = await start(server, mca={"peers": peer_settings(peer), **PATIENT})
    queue = await edge.remote("away")
    bodies = [b"%03d" % number + bytes(16 << 10) for number in range(2 * feed.LEAST_AHEAD)]
    await edge.put(queue, *bodies)
    call = await peer.reserved()
    for body in bodies:
        assert await call.body() == body
        call.confirm()
    await until(lambda: edge.is_empty(queue))
    assert len(held) > 1
    assert max(held) < 64 << 10


async def test_who_holds_messages_and_owns_nothing_is_not_waited_for_for_ever(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Until the dead have surely been swept, and no longer: he took a message out of it as of any other queue."""
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


async def test_what_was_written_goes_out_no_more_once_the_queue_is_lost(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """It may be another's already: a peer that reads late gets no whole message of the one before."""
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
    """What was written waits in the edge: buffers do not hold it all."""
    return edge.output.total > 0
