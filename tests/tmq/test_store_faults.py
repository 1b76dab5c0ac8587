"""Test a store that is down, full, read-only or empty: no request succeeds without being stored (tmq.md 7.2)."""

from __future__ import annotations

import asyncio

import pytest

from protos import tmq
from services.store import Store
from tests.live import until
from tests.servers import Server
from tests.tmq.client import Client, answer_or_none
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge

Q, TARGET = tmq.mqid_of(b"q"), tmq.mqid_of(b"target")
BRISK = {"patience_s": 0.3, "reply_timeout_s": 0.5, "call_deadline_s": 1.0}


@pytest.fixture
async def edge(own_server: Server, make_edge: MakeEdge) -> LiveEdge:
    """Return an edge with short timeouts on a server of its own."""
    return await make_edge(own_server.url, request_timeout_s=1.5, eof_grace_s=0.1, store=BRISK)


async def test_killed_and_back(edge: LiveEdge, own_server: Server) -> None:
    """Check that ENQs fail without being stored later while the store is down, and that service resumes (7.2)."""
    client = await edge.client()
    mqid = await client.queue(b"q")
    await client.put(mqid, b"before")
    own_server.kill9()
    # requests sent before the outage is detected could only stay unanswered
    await until(lambda: not edge.is_ready())
    assert not await client.enq(mqid, b"away")
    assert await client.dnq(mqid) is None
    assert await client.select(mqid) == tmq.UNUSABLE
    assert await client.open(b"q") is None
    assert not await client.create(b"other")
    assert not edge.is_ready()
    own_server.start()
    await until(edge.is_ready)
    await client.put(mqid, b"after")
    assert await client.drain(mqid) == [b"before", b"after"]
    assert edge.refusals()["store_unavailable"] >= 1


async def test_failures_do_not_wait_for_a_settlement(edge: LiveEdge, own_server: Server) -> None:
    """Check that requests after a delivered message fail in time while the store is down (6.1)."""
    client = await edge.client()
    mqid = await client.queue(b"q")
    await client.put(mqid, b"1", b"2")
    assert await client.dnq(mqid) == b"1"
    own_server.kill9()
    await until(lambda: not edge.is_ready())
    assert await client.dnq(mqid) is None
    assert not await client.enq(mqid, b"away")
    own_server.start()
    await until(edge.is_ready)
    assert await client.drain(mqid) == [b"2"]


async def test_transaction_across_a_restart(edge: LiveEdge, own_server: Server) -> None:
    """Check that leases and buffered messages survive the death of the store (5.3)."""
    client = await edge.client()
    mqid = await client.queue(b"q")
    await client.put(mqid, b"1", b"2")
    assert await client.ts()
    assert await client.dnq(mqid) == b"1"
    assert await client.enq(mqid, b"3")
    own_server.kill9()
    own_server.start()
    await until(edge.is_ready)
    assert await client.te()
    assert await client.drain(mqid) == [b"2", b"3"]


async def test_killed_again_and_again_under_load(edge: LiveEdge, own_server: Server) -> None:
    """Check that acknowledged messages are stored once and in order, failed ones are not, and others may be (7.2)."""
    clients = [await edge.client() for _ in range(4)]
    for client in clients:
        await client.queue(b"q")
    halt = asyncio.Event()
    streams = [asyncio.ensure_future(stream(client, name, halt)) for name, client in enumerate(clients)]
    for _ in range(3):
        enough = (await edge.stats("q"))["added"] + 300
        await until(lambda enough=enough: has_grown(edge, enough))
        own_server.kill9()
        own_server.start()
        await until(edge.is_ready)
    halt.set()
    outcomes = await asyncio.gather(*streams)
    reader = await edge.client()
    await reader.queue(b"q")
    found = [body.split() for body in await reader.messages(Q, 20_000) if body is not None]
    for name, outcome in enumerate(outcomes):
        mine = [int(number) for owner, number in found if int(owner) == name]
        assert mine == sorted(set(mine)), "twice, or out of order"
        assert not {n for n, ok in outcome.items() if ok} - set(mine), "an OK for a lost message"
        assert not {n for n, ok in outcome.items() if not ok} & set(mine), "failed, but stored"


async def stream(client: Client, name: int, halt: asyncio.Event) -> dict[int, bool]:
    """Send ENQs, ten at a time; return the reply to each that was answered."""
    outcome: dict[int, bool] = {}
    for start in range(0, 4_000, 10):
        if halt.is_set():
            break
        try:
            await client.send(*(tmq.encode_enq(Q, b"%d %d" % (name, n)) for n in range(start, start + 10)))
            for number in range(start, start + 10):
                outcome[number] = await client.read(1) == b"\1"
        except (EOFError, ConnectionError):
            break
    return outcome


async def has_grown(edge: LiveEdge, size: int) -> bool:
    return bool((await edge.stats("q"))["added"] >= size)


async def test_transaction_fails_if_the_store_is_full(edge: LiveEdge, own_server: Server) -> None:
    """Check that a commit to a full store fails as a whole, and that its messages are returned (5.3, 7.2)."""
    client = await edge.client()
    await client.queue(b"q")
    await client.queue(b"target")
    await client.put(Q, *([bytes(10_000)] * 100))
    assert await client.ts()
    assert await client.dnq(Q) == bytes(10_000)
    assert await client.enq(TARGET, b"no room")
    with own_server.configured(maxmemory=str(own_server.info("memory")["used_memory"])):
        assert not await client.te()
        assert edge.refusals()["store_full"] == 1
        assert await client.select(Q) == 100
        assert await client.ts()
        assert await client.dnq(Q) == bytes(10_000)
        assert await client.te(), "settling needs no room"
    assert await client.select(Q) == 99
    assert await client.drain(TARGET) == []


async def test_full(edge: LiveEdge, own_server: Server) -> None:
    """Check that ENQs fail at 75 % of maxmemory, while DNQs continue (7.2)."""
    client = await edge.client()
    mqid = await client.queue(b"q")
    await client.put(mqid, *([bytes(10_000)] * 100))
    used = int(own_server.info("memory")["used_memory"])
    with own_server.configured(maxmemory=str(used)):
        await until(lambda: refused(client, mqid))
        assert edge.refusals()["store_full"] >= 1
        assert len(await client.drain(mqid)) >= 100
    await until(lambda: accepted(client, mqid))


async def refused(client: Client, mqid: bytes) -> bool:
    return not await client.enq(mqid, b"one more")


async def accepted(client: Client, mqid: bytes) -> bool:
    return await client.enq(mqid, b"one more")


async def test_store_with_eviction_is_refused(edge: LiveEdge, own_server: Server) -> None:
    """Check that a store with eviction gets no messages, as it could lose them (7.2)."""
    client = await edge.client()
    mqid = await client.queue(b"q")
    with own_server.configured(maxmemory_policy="allkeys-lru"):
        await until(lambda: refused(client, mqid))
        assert edge.refusals()["store_evicts"] >= 1
    await until(lambda: accepted(client, mqid))


async def test_read_only(edge: LiveEdge, own_server: Server) -> None:
    """Check that ENQs fail while the store is a replica of an unreachable server (7.2)."""
    client = await edge.client()
    mqid = await client.queue(b"q")
    await client.put(mqid, b"before")
    own_server.call("REPLICAOF", "127.0.0.1", "1")
    assert not await client.enq(mqid, b"lost")
    own_server.call("REPLICAOF", "NO", "ONE")
    await until(edge.is_ready)
    await client.put(mqid, b"after")
    assert await client.drain(mqid) == [b"before", b"after"]


async def test_empty(edge: LiveEdge, own_server: Server) -> None:
    """Check that an empty store is not taken for an empty queue, and old handles stay invalid after its setup."""
    client = await edge.client()
    mqid = await client.queue(b"q")
    await client.put(mqid, b"lost with the store")
    own_server.call("FLUSHALL")
    assert await answer_or_none(client.enq(mqid, b"no")) is not True
    await until(lambda: not edge.is_ready())
    other = await edge.client()
    assert not await other.create(b"q")
    store = Store(own_server.url, "admin")
    await store.initialise()
    await store.close()
    await until(edge.is_ready)
    fresh = await edge.client()
    assert await fresh.open(b"q") is None
    assert await fresh.drain(await fresh.queue(b"q")) == []
    assert await answer_or_none(client.enq(mqid, b"no")) is not True
