"""Replies to clients while the store stalls, dies, recovers or loses a reply (ring.md 5.8, tmq.md 7.2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from services.kit.metrics.metrics import Traffic
from services.store import Store
from services.store.pipeline.domain import Timing
from tests.live import until
from tests.plain_client import answer_or_none
from tests.ring.clients.client import ERROR, OK, Client, Refused, create, pull, push
from tests.ring.clients.conftest import MakeEdge
from tests.ring.clients.live import CLIENTS, LiveClients
from tests.servers import Server
from tests.tmq.cutter import Cut, Cutter

MIB = 1 << 20
UNAVAILABLE = "store is unavailable: nothing was done; try again later"
BRISK = {"patience_s": 0.3, "reply_timeout_s": 0.5, "call_deadline_s": 1.0}


@pytest.fixture
async def edge(own_server: Server, make_edge: MakeEdge) -> LiveClients:
    """Start an edge with short times on a server of its own."""
    return await make_edge(own_server.url, request_timeout_s=1.5, clients={"eof_grace_s": 0.1}, store=BRISK)


async def outcome(client: Client, body: bytes) -> bool | None:
    """Return the outcome of a push: True for OK, False for ERROR, None if closed unanswered."""
    try:
        await client.push(b"q", body)
    except Refused:
        return False
    except (EOFError, ConnectionResetError):
        return None
    return True


async def test_store_outage_and_recovery(edge: LiveClients, own_server: Server) -> None:
    """Check that ERROR means that nothing was done, and that nothing answered OK is lost (5.8)."""
    client = await edge.client()
    await client.create(b"q")
    await client.push(b"q", b"kept")
    own_server.kill9()
    await until(lambda: not edge.is_ready())
    with pytest.raises(Refused, match=UNAVAILABLE):
        await client.push(b"q", b"refused")
    for ask in (
        client.pull(b"q"),
        client.create(b"new"),
        client.destroy(b"q"),
        client.pull(b"not known here"),
    ):
        with pytest.raises(Refused, match=UNAVAILABLE):
            await ask
    own_server.restart()
    await until(edge.is_ready)
    await client.push(b"q", b"after")
    assert await client.drain(b"q") == [b"kept", b"after"]
    assert edge.refusals()["store_unavailable"] == 5


async def test_messages_pulled_before_a_store_crash_can_be_settled(
    edge: LiveClients, own_server: Server
) -> None:
    """Check that the lease of a pulled message outlives a crash of the store's server (5.2)."""
    client = await edge.client()
    await client.create(b"q")
    await client.push(b"q", b"1", b"2")
    assert await client.pull(b"q") == b"1"
    own_server.kill9()
    own_server.restart()
    await until(edge.is_ready)
    assert await client.pull(b"q") == b"2"
    await client.send(create(b"new"))
    assert await client.ok(b"new") == b""
    await until(partial(acked, edge, 2))
    assert (await edge.stats("q"))["returned"] == 0


async def acked(edge: LiveClients, count: int) -> bool:
    return bool((await edge.stats("q"))["acked"] == count)


async def test_stopped_store_and_continued(edge: LiveClients, own_server: Server) -> None:
    """Check that requests sent to a stopped store get their known outcome or no answer.

    5.8: each is stored once or not at all.
    """
    clients = [await edge.client() for _ in range(8)]
    await clients[0].create(b"q")
    await clients[0].push(b"q", b"known")
    assert await clients[0].drain(b"q") == [b"known"]
    own_server.stop()
    found_out = await asyncio.gather(*(outcome(client, b"%d" % n) for n, client in enumerate(clients)))
    own_server.cont()
    await until(edge.is_ready)
    reader = await edge.client()
    found = await reader.drain(b"q")
    assert len(set(found)) == len(found), "stored twice"
    for n, answered in enumerate(found_out):
        assert answered is not True, "OK from a stopped store"
        if answered is False:
            assert b"%d" % n not in found, "ERROR, but the message was stored"
    assert None in found_out, "a request with unknown outcome was answered"
    assert edge.refusals()["outcome_unknown"] == found_out.count(None)


async def test_each_request_on_a_stopped_store(edge: LiveClients, own_server: Server) -> None:
    """Check that on a stopped store no request is answered OK, and those answered ERROR were not done (5.8)."""
    pulls, creates, destroys, witness = [await edge.client() for _ in range(4)]
    await witness.create(b"q")
    await witness.create(b"old")
    await witness.push(b"q", b"1", b"2")
    assert await pulls.pull(b"q") == b"1"
    own_server.stop()
    asked = asyncio.gather(
        answer_or_none(pulls.pull(b"q")),
        answer_or_none(creates.create(b"new")),
        answer_or_none(destroys.destroy(b"old")),
        return_exceptions=True,
    )
    outcomes = await asked
    own_server.cont()
    await until(edge.is_ready)
    assert all(each is None or str(each) == UNAVAILABLE for each in outcomes)
    for client in (pulls, creates, destroys):
        client.close()
    await until(lambda: free(edge))
    assert await witness.drain(b"q") in ([b"1", b"2"], [b"2"])  # the first was settled by the second pull
    if outcomes[2] is not None:
        assert await witness.pull(b"old") is None
    if outcomes[1] is not None:
        with pytest.raises(Refused, match="no node serves"):
            await witness.pull(b"new")


async def free(edge: LiveClients) -> bool:
    return bool((await edge.stats("q"))["in_flight"] == 0)


@pytest.fixture
async def cutter(own_server: Server) -> AsyncIterator[Cutter]:
    async with Cutter(own_server.port) as cutter:
        yield cutter


@pytest.mark.parametrize("cut", Cut, ids=lambda cut: cut.name.lower())
async def test_lost_store_reply_closes_the_connection(cutter: Cutter, make_edge: MakeEdge, cut: Cut) -> None:
    """Check that after a lost store reply the outcome is asked for until it is known (5.8).

    Nothing is done twice and nothing is lost.
    """
    edge = await make_edge(cutter.url, request_timeout_s=20.0, store={"reply_timeout_s": 0.3})
    client = await edge.client()
    await client.create(b"q")
    for n in range(4):
        cutter.cut_at(cut, b"marked-%d" % n, times=2 if n % 2 else 1)
        await client.send(push(b"q", b"before", b"marked-%d" % n, b"after"))
        for _ in range(3):
            assert await client.ok(b"q") == b""
    assert cutter.cuts == 6
    assert await client.drain(b"q") == [
        body for n in range(4) for body in (b"before", b"marked-%d" % n, b"after")
    ]


async def test_waiting_requests_are_bounded(own_server: Server, make_edge: MakeEdge) -> None:
    """Check that clients beyond the bound are not read, and all are answered once the store continues (tmq.md 7.3)."""
    edge = await make_edge(own_server.url, store={"max_pending_bytes": 2 * MIB})
    clients = [await edge.client() for _ in range(3)]
    await clients[0].create(b"q")
    for client in clients:
        await client.push(b"q", b"known")
    waiting = edge.service.store.open_domain().pipe.waiting
    traffic = edge.listeners[CLIENTS].traffic
    own_server.stop()
    try:
        load = push(b"q", *[bytes(16_000)] * 500)  # 8 MB from each
        sends = [asyncio.ensure_future(client.send(load)) for client in clients]
        await until(lambda: stands_still(traffic))
        read = traffic.received
        assert waiting.max_bytes < waiting.pending_bytes <= waiting.max_bytes + MIB * len(clients)
        assert await clients[0].is_silent(0.3)
        assert traffic.received == read
    finally:
        own_server.cont()
    await asyncio.gather(*sends)
    for client in clients:
        for _ in range(500):
            assert await client.ok(b"q") == b""
    assert (await edge.stats("q"))["ready"] == 1_503


async def stands_still(traffic: Traffic) -> bool:
    """Return whether some octets were read, and no more are for a moment."""
    read = traffic.received
    await asyncio.sleep(0.1)
    return 0 < read == traffic.received


async def test_draining_session_answers_pending_requests(own_server: Server, make_edge: MakeEdge) -> None:
    """Check that a draining session answers pending requests, also one that the store is processing (5.2)."""
    edge = await make_edge(own_server.url)
    client = await edge.client()
    await client.create(b"q")
    await client.push(b"q", b"1")
    own_server.stop()
    try:
        await edge.deliver(CLIENTS, client, push(b"q", b"2") + create(b"new") + push(b"new", b"3"))
        await edge.listeners[CLIENTS].drain(0.0)
    finally:
        own_server.cont()
    for name in (b"q", b"new", b"new"):
        assert await client.ok(name) == b""
    assert await client.ended() == "fin"


async def test_a_store_that_is_full(own_server: Server, make_edge: MakeEdge) -> None:
    """Check that a full store refuses pushes and serves pulls (5.8)."""
    edge = await make_edge(own_server.url)
    client = await edge.client()
    await client.create(b"q")
    with own_server.configured(maxmemory="12mb"):
        await client.send(push(b"q", *[bytes(MIB // 2)] * 40))
        replies = await client.replies(b"q", 40)
        pushed = sum(reply.operation is OK for reply in replies)
        assert 0 < pushed < 40
        assert {r.message for r in replies if r.operation is ERROR} == {
            b"store is full: pull messages, or push later"
        }
        assert len(await client.drain(b"q")) == pushed
    await client.push(b"q", b"again")


async def test_a_store_that_evicts(own_server: Server, make_edge: MakeEdge) -> None:
    """Check that a store that evicts keys is refused: it might drop acknowledged messages (5.8)."""
    edge = await make_edge(own_server.url)
    client = await edge.client()
    await client.create(b"q")
    with (
        own_server.configured(maxmemory_policy="allkeys-lru"),
        pytest.raises(Refused, match="set maxmemory-policy to noeviction"),
    ):
        await client.push(b"q", b"x")


async def test_a_lease_that_was_lost(own_server: Server, make_edge: MakeEdge) -> None:
    """Check that a request that would settle a lost lease is not answered: others get the message (tmq.md 6.1)."""
    edge = await make_edge(own_server.url)
    client, other = await edge.client(), await edge.client()
    await edge.declare("q", visibility_timeout="1ms")
    await client.push(b"q", b"1", b"2")
    assert await client.pull(b"q") == b"1"
    # another edge with short timeouts considers ours dead
    impatient = Store(
        own_server.url, "impatient", timing=Timing(session_timeout_ms=100, beat_s=0.03, sweep_s=0.05)
    )
    impatient.open_domain()
    impatient.start_serving()
    await until(lambda: ready(edge, 2))
    await impatient.close()
    await client.send(pull(b"q"))
    with pytest.raises((EOFError, ConnectionResetError)):
        await client.ok(b"q")
    await until(lambda: ready(edge, 2))
    assert await other.drain(b"q") == [b"1", b"2"]


async def ready(edge: LiveClients, count: int) -> bool:
    return bool((await edge.stats("q"))["ready"] == count)
