"""Test the ambiguous code 5 (tmq.md 3.1)."""

from __future__ import annotations

import asyncio

import pytest

from protos import tmq
from tests.servers import Server
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge

FIVE, OK, FAILED = b"\5", b"\0", b"\1"
EMPTY = b"\xff\xff\xff\xff"
GRACE_S = 0.2
LONGER_S = 0.5  # longer than the grace, to observe that nothing arrives

LISTENERS = {
    "document": {"port": 0},
    "reference": {"port": 0, "dialect": "reference"},
    "never": {"port": 0, "lone_five_grace_ms": 0},
    "patient": {"port": 0, "lone_five_grace_ms": 10_000},
    "select": {"port": 0, "code5_mqid": "select"},
}


@pytest.fixture
async def edge(make_edge: MakeEdge) -> LiveEdge:
    return await make_edge(listeners=LISTENERS, eof_grace_s=0.1)


async def is_in_transaction(client: Client) -> bool:
    """Return whether a transaction was open, and abort it."""
    return await client.ta()


async def test_five_and_an_mqid_is_a_dnq(client: Client) -> None:
    # 3.1
    mqid = await client.queue(b"q")
    await client.put(mqid, b"hello")
    await client.send(FIVE + mqid)
    assert await client.message() == b"hello"
    assert not await is_in_transaction(client)


@pytest.mark.parametrize("first", [b"0", b"9", b"a", b"f", b"<"])
async def test_only_the_first_byte_distinguishes_an_mqid(client: Client, first: bytes) -> None:
    # 3.1: a DNQ with an invalid MQID
    await client.send(FIVE + first + b"\0" * 63)
    assert await client.read(4) == EMPTY
    assert not await is_in_transaction(client)


async def test_pipelined_requests_keep_their_order(own_server: Server, make_edge: MakeEdge) -> None:
    # 3.1, 1.2: the store is slower than the grace; the DNQ is not part of the transaction, so TS settles it (6.1)
    edge = await make_edge(own_server.url, eof_grace_s=0.1)
    client = await edge.client()
    mqid = await client.queue(b"q")
    await client.put(mqid, b"1")
    own_server.stop()
    try:
        await client.send(tmq.encode_dnq(mqid) + FIVE)
        assert await client.is_silent(2 * GRACE_S)
    finally:
        own_server.cont()
    assert await client.message() == b"1"
    assert await client.read(1) == OK
    assert await client.ta()
    assert await client.drain(mqid) == []


async def test_lone_five_is_a_ts_after_the_grace(client: Client) -> None:
    # 3.1
    started = asyncio.get_running_loop().time()
    await client.send(FIVE)
    assert await client.read(1) == OK
    # the loop's clock has steps of 1 ms, and differences of such times have rounding errors
    assert asyncio.get_running_loop().time() - started > GRACE_S - 0.001
    assert await is_in_transaction(client)


async def test_any_code_after_a_five_makes_it_a_ts(edge: LiveEdge) -> None:
    # 3.1: the first byte of an MQID is never a code; the grace of 10 s does not matter
    for code, expected in {
        tmq.encode_create(b"new"): OK + OK,
        tmq.encode_delete(b"new"): OK + OK,
        tmq.encode_open(b"none"): OK + tmq.nil_mqid(tmq.Dialect.DOCUMENT),
        tmq.encode_close(b"0" * 64): OK + FAILED,
        tmq.encode_enq(b"0" * 64, b""): OK + b"\0",
        b"\6": OK + OK,
        b"\7": OK + OK,
        b"\x08": OK + FAILED,
        tmq.encode_select(b"0" * 64): OK + b"\xff" * 8,
    }.items():
        client = await edge.client("patient")
        await client.send(FIVE + code)
        assert await client.read(len(expected)) == expected, code


async def test_five_after_five_is_a_second_ts(edge: LiveEdge) -> None:
    # 3.1: the first is answered at once, the second is again a lone five
    client = await edge.client()
    await client.send(FIVE + FIVE)
    assert await client.read(2) == OK + FAILED
    assert await is_in_transaction(client)


async def test_five_and_an_unknown_code_is_a_ts_and_closes(edge: LiveEdge) -> None:
    # 3.1, 3.2
    client = await edge.client("patient")
    await client.send(FIVE + b"\x7f")
    assert await client.read(1) == OK
    assert await client.ended() == "fin"


@pytest.mark.parametrize("listener", ["document", "patient", "never"])
async def test_five_and_fin_is_a_ts_at_once(edge: LiveEdge, listener: str) -> None:
    # 3.1: this rule always applies
    client = await edge.client(listener)
    await client.send(FIVE)
    client.fin()
    assert await client.rest() == OK
    assert edge.refusals() == {}


async def test_grace_of_0_disables_the_lone_five(edge: LiveEdge) -> None:
    # 3.1: on this listener a 5 waits for the next byte
    client = await edge.client("never")
    mqid = await client.queue(b"q")
    await client.send(FIVE)
    assert await client.is_silent(LONGER_S)
    await client.send(mqid)
    assert await client.read(4) == EMPTY


@pytest.mark.parametrize("taught", [b"\x08", tmq.encode_select(b"0" * 64)], ids=["8", "9"])
async def test_no_grace_after_8_or_9(client: Client, taught: bytes) -> None:
    # 3.1: such a client has another code for TS
    mqid = await client.queue(b"q")
    await client.send(taught)
    await client.read(1 if taught == b"\x08" else 8)
    await client.send(FIVE)
    assert await client.is_silent(LONGER_S)
    await client.send(mqid)
    assert await client.read(4) == EMPTY


async def test_five_before_a_code_is_a_ts_also_after_8(client: Client) -> None:
    # 3.1: the other three rules always apply
    assert await client.ts()
    assert await client.te()
    await client.send(FIVE + b"\6")
    assert await client.read(2) == OK + OK


async def test_lone_five_without_grace_is_unfinished(make_edge: MakeEdge) -> None:
    # 3.1, 7.3
    edge = await make_edge(listeners={"never": LISTENERS["never"]}, request_timeout_s=0.3)
    client = await edge.client("never")
    await client.send(FIVE)
    assert await client.ended() == "fin"
    assert edge.refusals() == {"request_timeout": 1}


async def test_grace_above_the_request_timeout_never_applies(make_edge: MakeEdge) -> None:
    # 3.1
    edge = await make_edge(listeners={"patient": LISTENERS["patient"]}, request_timeout_s=0.3)
    client = await edge.client("patient")
    await client.send(FIVE)
    assert await client.ended() == "fin"
    assert edge.refusals() == {"request_timeout": 1}


async def test_dnq_cut_after_its_five_times_out(edge: LiveEdge, client: Client) -> None:
    # 3.1: a TS, and then the MQID's first digit is an unknown code; the message stays
    mqid = await client.queue(b"q")
    await client.put(mqid, b"safe")
    await client.send(FIVE)
    assert await client.read(1) == OK
    await client.send(mqid)
    assert await client.ended() == "fin"
    assert edge.refusals() == {"unknown_code": 1}
    other = await edge.client()
    assert await other.drain(await other.queue(b"q")) == [b"safe"]


async def test_grace_begins_with_the_five(client: Client) -> None:
    # 3.1: an earlier request is still unanswered, and its reply comes first
    mqid = await client.queue(b"q")
    await client.send(tmq.encode_enq(mqid, b"1") + tmq.encode_dnq(mqid) + FIVE)
    assert await client.read(1) == b"\1"
    assert await client.message() == b"1"
    assert await client.read(1) == OK
    assert await is_in_transaction(client)


async def test_in_the_reference_five_is_always_a_dnq(edge: LiveEdge) -> None:
    # 4.2: with any next bytes, however late
    client = await edge.client("reference")
    mqid = await client.queue(b"q")
    await client.send(FIVE)
    assert await client.is_silent(LONGER_S)
    await client.send(mqid)
    assert await client.read(4) == EMPTY
    await client.send(FIVE + b"\0" * 64)
    assert await client.read(4) == EMPTY


async def test_in_the_reference_five_and_fin_is_truncated(edge: LiveEdge) -> None:
    # 4.2, 3.3
    client = await edge.client("reference")
    await client.send(FIVE)
    client.fin()
    assert await client.ended() == "fin"
    assert edge.refusals() == {"truncated": 1}


async def test_configured_five_with_mqid_is_a_select(edge: LiveEdge) -> None:
    # 3.1: code5_mqid; TS as a 5 is not affected
    client = await edge.client("select")
    mqid = await client.queue(b"q")
    await client.put(mqid, b"1", b"2")
    await client.send(FIVE + mqid)
    assert await client.read(8) == (2).to_bytes(8, "big")
    await client.send(FIVE)
    assert await client.read(1) == OK
    await client.send(FIVE + mqid)
    assert await client.read(8) == (2).to_bytes(8, "big")
    assert await is_in_transaction(client)
