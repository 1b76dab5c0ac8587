"""Test transactions as on the original server, the default of a reference listener (tmq.md 5.7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from protos import tmq
from protos.tmq import Dialect
from services.tmq.settings import TmqSettings
from tests.live import until
from tests.servers import Server
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge

Q = tmq.mqid_of(b"q")


@pytest.fixture
async def client(edge: LiveEdge) -> Client:
    return await edge.client("reference")


@pytest.fixture
async def other(edge: LiveEdge) -> Client:
    return await edge.client("reference")


async def ready(edge: LiveEdge, count: int) -> bool:
    return bool((await edge.stats("q"))["ready"] == count)


async def test_disconnect_returns_the_transactions_messages(edge: LiveEdge, client: Client) -> None:
    # the original test client puts inside the transaction, takes all messages and disconnects
    assert await client.create(b"q")
    assert await client.open(b"q") == Q
    assert await client.ts()
    for number in range(5):
        assert await client.enq(Q, b"%d" % number)
    assert await client.drain(Q) == [b"%d" % number for number in range(5)]
    client.close()
    await until(lambda: ready(edge, 5))


@pytest.mark.parametrize("end", ["te", "ta"])
async def test_te_outside_a_transaction_is_answered_0(client: Client, end: str) -> None:
    assert await getattr(client, end)()


@pytest.mark.parametrize("end", [tmq.encode_te, tmq.encode_ta], ids=["te", "ta"])
async def test_te_before_an_unknown_code_is_answered(client: Client, end: Callable[[Dialect], bytes]) -> None:
    await client.queue(b"q")
    await client.put(Q, b"1")
    await client.ts()
    assert await client.dnq(Q) == b"1"
    await client.send(end(Dialect.REFERENCE) + b"\xff")
    assert await client.rest() == b"\0"


async def test_second_ts_is_answered_0_and_keeps_the_transaction(client: Client, other: Client) -> None:
    await client.queue(b"q")
    await other.open(b"q")
    await client.put(Q, b"1", b"2")
    assert await client.ts()
    assert await client.dnq(Q) == b"1"
    assert await client.ts()
    assert await client.dnq(Q) == b"2"
    assert await client.ta()
    assert await other.drain(Q) == [b"1", b"2"]


async def test_enq_is_visible_at_once_and_survives_ta(client: Client, other: Client) -> None:
    await client.queue(b"q")
    await other.open(b"q")
    assert await client.ts()
    assert await client.enq(Q, b"1")
    assert await other.select(Q) == 1
    assert await client.ta()
    assert await other.dnq(Q) == b"1"


async def test_ta_returns_messages_to_their_places(client: Client, other: Client) -> None:
    await client.queue(b"q")
    await other.open(b"q")
    await client.put(Q, b"1", b"2", b"3")
    assert await client.ts()
    assert await client.messages(Q, 2) == [b"1", b"2"]
    assert await other.select(Q) == 1
    assert await client.ta()
    assert await other.drain(Q) == [b"1", b"2", b"3"]


async def test_te_settles(edge: LiveEdge, client: Client) -> None:
    await client.queue(b"q")
    await client.put(Q, b"1", b"2")
    assert await client.ts()
    assert await client.dnq(Q) == b"1"
    assert await client.te()
    client.close()
    await edge.disconnect()
    assert (await edge.stats("q"))["ready"] == 1


async def test_original_transaction_has_no_limits(make_edge: MakeEdge) -> None:
    edge = await make_edge(transaction={"time_limit_s": 0.01, "max_operations": 1, "max_bytes": 1})
    client = await edge.client("reference")
    await client.queue(b"q")
    far = await edge.declare("far", domain="elsewhere")
    mqid = await client.open(far.name.encode())
    assert mqid is not None
    assert await client.ts()
    for _ in range(3):
        await client.put(Q, *[b"body"] * 700)
    await client.put(mqid, b"there")
    for _ in range(3):
        assert await client.messages(Q, 700) == [b"body"] * 700
    assert await client.dnq(mqid) == b"there"
    assert await client.te()
    assert await client.drain(Q) == await client.drain(mqid) == []


async def test_te_without_a_reply_of_the_store_is_not_answered(
    own_server: Server, make_edge: MakeEdge
) -> None:
    # 7.2: the message that it was to settle is settled once the store is back
    edge = await make_edge(own_server.url, request_timeout_s=0.3)
    client = await edge.client("reference")
    await client.queue(b"q")
    await client.put(Q, b"1")
    assert await client.ts()
    assert await client.dnq(Q) == b"1"
    own_server.stop()
    try:
        await client.send(tmq.encode_te(Dialect.REFERENCE))
        assert await client.rest() == b""
    finally:
        own_server.cont()
    await until(lambda: ready(edge, 0))
    assert (await edge.stats("q"))["acked"] == 1


async def test_received_te_is_committed_during_a_drain(own_server: Server, make_edge: MakeEdge) -> None:
    edge = await make_edge(own_server.url)
    client = await edge.client("reference")
    await client.queue(b"q")
    await client.put(Q, b"1", b"2")
    assert await client.ts()
    assert await client.dnq(Q) == b"1"
    own_server.stop()
    try:
        await edge.deliver("reference", client, tmq.encode_dnq(Q) + tmq.encode_te(Dialect.REFERENCE))
        await edge.listeners["reference"].drain(0.0)
    finally:
        own_server.cont()
    assert await client.rest() == b"\0\0\0\1" + b"2" + b"\0"
    assert (await edge.stats("q"))["acked"] == 2


# The choice of rules


async def test_reference_listener_may_be_atomic(make_edge: MakeEdge) -> None:
    atomic = {"port": 0, "dialect": "reference", "transactions": "atomic"}
    edge = await make_edge(listeners={"reference": atomic})
    client = await edge.client("reference")
    await client.queue(b"q")
    assert not await client.te()
    assert await client.ts()
    assert not await client.ts()
    assert await client.enq(Q, b"hidden")
    assert await client.select(Q) == 0
    assert await client.te()
    assert await client.select(Q) == 1


def test_document_listener_is_always_atomic() -> None:
    with pytest.raises(ValueError, match="transactions: original needs dialect: reference"):
        TmqSettings.model_validate({"listeners": {"document": {"port": 0, "transactions": "original"}}})
