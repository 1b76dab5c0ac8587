"""Test requests, replies and their order (tmq.md 1.2, 3.2-3.4, 4, 7.6)."""

from __future__ import annotations

import asyncio

import pytest

from protos import tmq
from protos.tmq import Dialect, Operation
from tests.live import until
from tests.tmq.client import Client
from tests.tmq.live import LiveEdge

CODES = range(256)
TAKEN = range(10)  # both dialects use the codes 0 to 9
ORDERS = b"orders"


# 3.2, 3.3


@pytest.mark.parametrize("listener", ["document", "reference"])
async def test_every_other_code_closes_the_connection(edge: LiveEdge, listener: str) -> None:
    # 3.2: counted, logged with the peer and the byte
    unknown = [code for code in CODES if code not in TAKEN]
    for code in unknown:
        client = await edge.client(listener)
        await client.send(bytes([code]))
        assert await client.ended() == "fin"
        (line,) = edge.log.events("refused", reason="unknown_code", detail=f"0x{code:02x}")
        assert line.__dict__["peer"] == "{}:{}".format(*client.address)
    assert edge.refusals() == {"unknown_code": len(unknown)}


async def test_requests_before_a_violation_are_answered(client: Client, other: Client) -> None:
    # 3.2: the bytes after it are not executed
    mqid = await client.queue(b"q")
    await client.send(
        tmq.encode_enq(mqid, b"1")
        + tmq.encode_dnq(mqid)
        + tmq.encode_enq(mqid, b"2")
        + tmq.encode_create(b"made")
    )
    await client.send(b"\x0a" + tmq.encode_create(b"not made") + tmq.encode_enq(mqid, b"3"))
    assert await client.rest() == b"\1" + b"\0\0\0\x011" + b"\1" + b"\0"
    assert await other.open(b"made") is not None
    assert await other.open(b"not made") is None
    assert await other.drain(await other.queue(b"q")) == [b"2"]


@pytest.mark.parametrize("listener", ["document", "reference"])
async def test_truncated_request_is_not_executed(edge: LiveEdge, listener: str) -> None:
    # 3.3: earlier requests are answered
    client, other = await edge.client(listener), await edge.client(listener)
    mqid = await client.queue(b"q")
    await client.send(tmq.encode_enq(mqid, b"whole") + tmq.encode_enq(mqid, b"torn")[:-1])
    client.fin()
    assert await client.rest() == tmq.encode_status(client.dialect, Operation.ENQ, True)
    assert await other.drain(await other.queue(b"q")) == [b"whole"]
    assert edge.refusals()["truncated"] == 1


# 3.4, 4


@pytest.mark.parametrize("dialect", Dialect)
async def test_failure_reply_of_each_operation(edge: LiveEdge, dialect: Dialect) -> None:
    # 3.4, 4.1, 4.3: in the reference CLOSE of an unknown MQID and DELETE are answered too
    client = await edge.client(dialect.value)
    missing = tmq.mqid_of(b"missing")
    assert await client.create(b"there")
    minus_one = b"\xff" * (8 if dialect is Dialect.DOCUMENT else 4)
    enq_failed = b"\0" if dialect is Dialect.DOCUMENT else b"\1"
    for request, failed in (
        (tmq.encode_create(b"there"), b"\1"),
        (tmq.encode_delete(b"missing"), b"\1"),
        (tmq.encode_open(b"missing"), tmq.nil_mqid(dialect)),
        (tmq.encode_close(missing), b"\1"),
        (tmq.encode_enq(missing, b"x"), enq_failed),
        (tmq.encode_dnq(missing), b"\xff\xff\xff\xff"),
        (tmq.encode_select(missing), minus_one),
    ):
        await client.send(request)
        assert await client.read(len(failed)) == failed, request


async def test_reference_dialect_differs_as_in_4_1(edge: LiveEdge) -> None:
    # 4.1: TS 6, TE 7, TA 8; ENQ 0 done; SELECT an i32; and 5.7
    client = await edge.client("reference")
    mqid = await client.queue(b"q")
    for request, reply in (
        (b"\6", b"\0"),
        (b"\4" + mqid + b"\0\0\0\1x", b"\0"),
        (b"\x09" + mqid, b"\0\0\0\1"),
        (b"\7", b"\0"),
        (b"\x09" + mqid, b"\0\0\0\1"),
        (b"\6", b"\0"),
        (b"\5" + mqid, b"\0\0\0\1x"),
        (b"\x08", b"\0"),
        (b"\1" + b"\0\0\0\1q", b"\0"),
    ):
        await client.send(request)
        assert await client.read(len(reply)) == reply, request


async def test_both_dialects_share_the_queues(edge: LiveEdge) -> None:
    # 1.1: two ports of one server
    document, reference = await edge.client("document"), await edge.client("reference")
    mine, theirs = await document.queue(b"q"), await reference.queue(b"q")
    assert await document.enq(mine, b"from the document")
    assert await reference.enq(theirs, b"from the reference")
    assert await reference.dnq(theirs) == b"from the document"
    assert await document.dnq(mine) == b"from the reference"


# 1.2, 7.6


async def test_replies_come_in_the_order_of_the_requests(client: Client) -> None:
    # 1.2: each is executed as if the client had waited for the reply to the one before
    mqid = tmq.mqid_of(b"q")
    talk = [
        (tmq.encode_open(b"q"), tmq.nil_mqid(Dialect.DOCUMENT)),
        (tmq.encode_create(b"q"), b"\0"),
        (tmq.encode_enq(mqid, b"not open"), b"\0"),
        (tmq.encode_open(b"q"), mqid),
        (tmq.encode_dnq(mqid), b"\xff\xff\xff\xff"),
        (tmq.encode_enq(mqid, b"1"), b"\1"),
        (tmq.encode_enq(mqid, b"2"), b"\1"),
        (tmq.encode_select(mqid), b"\0\0\0\0\0\0\0\2"),
        (b"\x08", b"\0"),
        (tmq.encode_dnq(mqid), b"\0\0\0\x011"),
        (tmq.encode_enq(mqid, b"3"), b"\1"),
        (b"\7", b"\0"),
        (tmq.encode_dnq(mqid), b"\0\0\0\x011"),
        (tmq.encode_close(mqid), b"\0"),
        (tmq.encode_enq(mqid, b"closed"), b"\0"),
        (tmq.encode_delete(b"q"), b"\0"),
        (tmq.encode_open(b"q"), tmq.nil_mqid(Dialect.DOCUMENT)),
    ]
    await client.send(*(request for request, _ in talk * 5))
    for number in range(5):
        for request, reply in talk:
            assert await client.read(len(reply)) == reply, (number, request)


async def test_enq_is_done_before_a_later_delete(edge: LiveEdge, client: Client) -> None:
    # 1.2: also when the store's queue of requests is filled by other clients
    busy = [await edge.client() for _ in range(6)]
    for crowd in busy:
        await crowd.queue(b"busy")
    mqid = await client.queue(b"q")
    load = tmq.encode_enq(tmq.mqid_of(b"busy"), bytes(400_000)) * 5
    sends = [asyncio.ensure_future(crowd.send(load)) for crowd in busy]
    await until(lambda: edge.service.store.open_domain().pipe.waiting.pending_bytes > 4 << 20)
    await client.send(tmq.encode_enq(mqid, b"1") + tmq.encode_enq(mqid, b"2") + tmq.encode_delete(b"q"))
    assert await client.read(3) == b"\1\1\0"
    await asyncio.gather(*sends)
    for crowd in busy:
        assert await crowd.read(5) == b"\1" * 5


async def test_long_runs_of_one_kind_are_answered_one_by_one(client: Client) -> None:
    # 7.6: more than are executed together
    mqid = await client.queue(b"q")
    await client.send(tmq.encode_enq(mqid, b"same") * 2_500)
    assert await client.read(2_500) == b"\1" * 2_500
    await client.send(tmq.encode_select(mqid) * 1_500)
    assert await client.read(8 * 1_500) == (2_500).to_bytes(8, "big") * 1_500
    await client.send(tmq.encode_dnq(mqid) * 2_600)
    assert await client.read(8 * 2_500) == b"\0\0\0\4same" * 2_500
    assert await client.read(4 * 100) == b"\xff" * 400


async def test_runs_on_many_queues_keep_the_order_of_each(client: Client) -> None:
    # 1.2, 7.6: at most 64 runs wait for the store at a time; this test sends more
    queues = [await client.queue(b"%d" % n) for n in range(3)]
    await client.send(*(tmq.encode_enq(queues[n % 3], b"%d" % n) for n in range(600)))
    assert await client.read(600) == b"\1" * 600
    for number, mqid in enumerate(queues):
        assert await client.messages(mqid, 201) == [*(b"%d" % n for n in range(number, 600, 3)), None]
