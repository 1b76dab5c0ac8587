"""Test requests whose store reply is lost: they are repeated until the outcome is known (tmq.md 5.3, 6.2, 7.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from protos import tmq
from tests.live import until
from tests.servers import Server
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.cutter import Cut, Cutter
from tests.tmq.live import LiveEdge

WORK = b"ps1_work"  # the store function for all work on messages

every_cut = pytest.mark.parametrize("cut", [Cut.REQUEST, Cut.REPLY], ids=lambda cut: cut.name.lower())


@pytest.fixture
async def cutter(server: Server) -> AsyncIterator[Cutter]:
    async with Cutter(server.port) as cutter:
        yield cutter


@pytest.fixture
async def edge(cutter: Cutter, make_edge: MakeEdge) -> AsyncIterator[LiveEdge]:
    """Yield an edge behind the cutter."""
    yield await make_edge(cutter.url, eof_grace_s=0.1)
    assert cutter.cuts, "no connection was cut"


@pytest.fixture
async def client(edge: LiveEdge) -> Client:
    client = await edge.client()
    await client.queue(b"q")
    return client


MQID = tmq.mqid_of(b"q")


@every_cut
async def test_enqs_are_stored_once_in_order(cutter: Cutter, client: Client, cut: Cut) -> None:
    # 7.2: batches with an unknown outcome are repeated before new ones are sent
    await client.put(MQID, b"first")
    cutter.cut_at(cut, WORK)
    await client.send(*(tmq.encode_enq(MQID, b"%d" % n) for n in range(100)))
    assert await client.read(100) == b"\1" * 100
    assert await client.messages(MQID, 102) == [b"first", *(b"%d" % n for n in range(100)), None]


@every_cut
async def test_enqs_keep_the_order_of_each_connection(
    edge: LiveEdge, cutter: Cutter, client: Client, cut: Cut
) -> None:
    # 7.2: no message is stored after a later one
    others = [await edge.client() for _ in range(10)]
    for other in others:
        await other.queue(b"q")
    cutter.cut_at(cut, WORK, times=3)
    for half in range(2):
        for name, other in enumerate(others):
            await other.send(*(tmq.encode_enq(MQID, b"%d %d" % (name, 50 * half + n)) for n in range(50)))
    for other in others:
        assert await other.read(100) == b"\1" * 100
    found = [body.split() for body in await client.drain(MQID)]
    for name in range(10):
        assert [int(number) for owner, number in found if int(owner) == name] == list(range(100))
    assert len(found) == 1_000


@every_cut
async def test_repeated_take_returns_the_same_messages(
    edge: LiveEdge, cutter: Cutter, client: Client, cut: Cut
) -> None:
    # 6.2
    await client.put(MQID, b"1", b"2", b"3")
    cutter.cut_at(cut, WORK)
    assert await client.messages(MQID, 2) == [b"1", b"2"]
    stats = await edge.stats("q")
    assert (stats["in_flight"], stats["delivered"]) == (2, 2)
    assert await client.drain(MQID) == [b"3"]


@every_cut
async def test_returned_message_is_taken_again(
    edge: LiveEdge, cutter: Cutter, client: Client, cut: Cut
) -> None:
    # 6.2, 5.4
    await client.put(MQID, b"1", b"2")
    assert await client.ts()
    assert await client.dnq(MQID) == b"1"
    assert await client.ta()
    cutter.cut_at(cut, WORK)
    assert await client.messages(MQID, 3) == [b"1", b"2", None]


@every_cut
async def test_transaction_is_applied_once(edge: LiveEdge, cutter: Cutter, client: Client, cut: Cut) -> None:
    # 5.3: repeated with the same id until the outcome is known
    await client.queue(b"target")
    target = tmq.mqid_of(b"target")
    await client.put(MQID, b"1", b"2")
    assert await client.ts()
    assert await client.dnq(MQID) == b"1"
    await client.put(target, b"a", b"b")
    cutter.cut_at(cut, WORK, times=2)
    assert await client.te()
    assert await client.drain(target) == [b"a", b"b"]
    assert await client.drain(MQID) == [b"2"]
    assert (await edge.stats("target"))["added"] == 2


@every_cut
async def test_invalid_transaction_fails_once(
    edge: LiveEdge, cutter: Cutter, client: Client, cut: Cut
) -> None:
    # 5.3: nothing is committed, and leased messages are returned
    await edge.declare("small", max_length=1)
    await client.queue(b"small")
    small = tmq.mqid_of(b"small")
    await client.put(MQID, b"1")
    assert await client.ts()
    assert await client.dnq(MQID) == b"1"
    await client.put(small, b"a", b"b")
    cutter.cut_at(cut, WORK)
    assert not await client.te()
    assert await client.drain(small) == []
    assert await client.drain(MQID) == [b"1"]


@every_cut
async def test_abort_returns_the_messages(cutter: Cutter, client: Client, cut: Cut) -> None:
    # 5.4
    await client.put(MQID, b"1", b"2")
    assert await client.ts()
    assert await client.messages(MQID, 2) == [b"1", b"2"]
    cutter.cut_at(cut, WORK)
    assert await client.ta()
    assert await client.drain(MQID) == [b"1", b"2"]


@every_cut
async def test_a_settle(edge: LiveEdge, cutter: Cutter, client: Client, cut: Cut) -> None:
    # 6.1: a settled message is not redelivered
    await client.put(MQID, b"1")
    assert await client.dnq(MQID) == b"1"
    cutter.cut_at(cut, WORK)
    client.fin()
    assert await client.ended() == "fin"
    await until(lambda: acked(edge, 1))
    other = await edge.client()
    assert await other.drain(await other.queue(b"q")) == []


async def acked(edge: LiveEdge, count: int) -> bool:
    return bool((await edge.stats("q"))["acked"] == count)


@every_cut
async def test_return_for_a_lost_connection(edge: LiveEdge, cutter: Cutter, client: Client, cut: Cut) -> None:
    # 6.1
    await client.put(MQID, b"1")
    assert await client.dnq(MQID) == b"1"
    cutter.cut_at(cut, WORK)
    client.reset()
    other = await edge.client()
    await other.queue(b"q")
    await until(lambda: sees(other, 1))
    assert await other.drain(MQID) == [b"1"]


async def sees(client: Client, count: int) -> bool:
    return await client.select(MQID) == count


Ask = Callable[[Client], Awaitable[bool]]


@every_cut
@pytest.mark.parametrize("step", [b"ps1_register", b"ps1_declare"])
async def test_create(cutter: Cutter, client: Client, cut: Cut, step: bytes) -> None:
    # 7.2: the creator learns that it succeeded, and the second client that the queue exists
    cutter.cut_at(cut, step)
    assert await client.create(b"new")
    assert not await client.create(b"new")
    assert await client.open(b"new") == tmq.mqid_of(b"new")


@every_cut
@pytest.mark.parametrize("step", [b"ps1_delete", b"ps1_unregister"])
async def test_delete(cutter: Cutter, client: Client, cut: Cut, step: bytes) -> None:
    # 7.2: stored once
    await client.put(MQID, b"1")
    cutter.cut_at(cut, step)
    assert await client.delete(b"q")
    assert not await client.delete(b"q")
    assert await client.open(b"q") is None
    assert await client.create(b"q")


REQUESTS = {"create": tmq.encode_create(b"new"), "delete": tmq.encode_delete(b"q")}


@pytest.mark.parametrize(
    ("operation", "step"),
    [
        ("create", b"ps1_register"),
        ("create", b"ps1_declare"),
        ("delete", b"ps1_delete"),
        ("delete", b"ps1_unregister"),
    ],
)
async def test_unknown_outcome_is_not_answered(
    cutter: Cutter, make_edge: MakeEdge, operation: str, step: bytes
) -> None:
    # 7.2: the store has executed it but its replies are lost: "failed" would be wrong, so the connection is closed
    # uncut requests are answered long before this timeout
    edge = await make_edge(cutter.url, request_timeout_s=2.0)
    client, other = await edge.client(), await edge.client()
    await client.queue(b"q")
    cutter.cut_at(Cut.SILENCE, step)
    await client.send(REQUESTS[operation])
    assert await client.ended() == "fin"
    assert edge.refusals()["outcome_unknown"] == 1
    assert cutter.cuts == 1
    if operation == "create":  # a later CREATE completes one that was left half done
        await other.create(b"new")
        assert await other.open(b"new") == tmq.mqid_of(b"new")
    else:
        await until(lambda: other.create(b"q"))
        assert await other.open(b"q") == MQID


@every_cut
async def test_open(cutter: Cutter, client: Client, cut: Cut) -> None:
    # 2.2: reading may be repeated
    cutter.cut_at(cut, b"HGET")
    assert await client.open(b"q") == MQID
