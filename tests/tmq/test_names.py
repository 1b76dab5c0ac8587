"""Test names and MQIDs (tmq.md 2)."""

from __future__ import annotations

import struct
from hashlib import sha256

import pytest

from protos import tmq
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge

KIB_64 = 64 << 10
NIL = b"<nil>" + b"0" * 59
REFERENCE_NIL = (b"<NIL>" + b"0" * 27) * 2
NAMED = {"create": b"\0", "delete": b"\1", "open": b"\2"}  # the operations with a name, and their codes
FAILED = {"create": b"\1", "delete": b"\1", "open": NIL}

every_operation = pytest.mark.parametrize("operation", NAMED)


def request(operation: str, name: bytes) -> bytes:
    return NAMED[operation] + struct.pack(">I", len(name)) + name


@pytest.mark.parametrize(
    "name",
    [
        b"x",
        b"\0",
        b"\xff" * 255,
        bytes(range(255)),
        b"orders\n",
        "zażółć".encode(),
        b"{main}:*",
        b"\xed\xa0\x80",
    ],
    ids=repr,
)
async def test_name_has_1_to_255_arbitrary_bytes(client: Client, other: Client, name: bytes) -> None:
    # 2.1, 2.2: its MQID is its SHA-256
    assert await client.create(name)
    mqid = await client.open(name)
    assert mqid == sha256(name).hexdigest().encode()
    assert await client.enq(mqid, name)
    assert not await other.create(name)
    assert await other.drain(await other.queue(name)) == [name]
    assert await other.delete(name)
    assert await client.open(name) is None
    assert not await other.delete(name)


@every_operation
@pytest.mark.parametrize("size", [0, 256, 1000, KIB_64])
async def test_invalid_name_is_skipped_and_the_request_fails(
    edge: LiveEdge, client: Client, operation: str, size: int
) -> None:
    # 2.1: the next bytes are the next request
    await client.send(request(operation, bytes(size)) + tmq.encode_create(b"next"))
    assert await client.read(len(FAILED[operation]) + 1) == FAILED[operation] + b"\0"
    assert edge.refusals() == {"name_too_long" if size else "bad_name": 1}


@every_operation
async def test_name_above_64_kib_fails_and_closes_the_connection(
    edge: LiveEdge, client: Client, other: Client, operation: str
) -> None:
    # 2.1: the name is not read
    await client.send(NAMED[operation] + struct.pack(">I", KIB_64 + 1))
    assert await client.read(len(FAILED[operation])) == FAILED[operation]
    assert await client.ended() == "fin"
    assert edge.refusals() == {"name_too_long": 1}
    assert await other.create(b"others go on")


@every_operation
async def test_requests_after_a_refused_name_are_ignored(
    client: Client, other: Client, operation: str
) -> None:
    # 2.1: the next bytes could belong to the name
    await client.send(NAMED[operation] + struct.pack(">I", 0xFFFFFFFF) + tmq.encode_create(b"inside"))
    assert await client.rest() == FAILED[operation]
    assert await other.open(b"inside") is None


@pytest.mark.parametrize(("listener", "nil"), [("document", NIL), ("reference", REFERENCE_NIL)])
async def test_nil_depends_on_the_dialect(edge: LiveEdge, listener: str, nil: bytes) -> None:
    # 2.2: clients recognize nil by its first five characters; nil is not a valid MQID
    client = await edge.client(listener)
    await client.send(tmq.encode_open(b"missing"))
    assert await client.read(64) == nil
    assert not await client.enq(nil, b"x")
    assert await client.dnq(nil) is None
    assert await client.select(nil) == tmq.UNUSABLE
    assert not await client.close_queue(nil)


async def test_open_queues_belong_to_the_connection(edge: LiveEdge, client: Client, other: Client) -> None:
    # 2.3
    mqid = await client.queue(b"q")
    assert not await other.enq(mqid, b"x")
    assert await other.dnq(mqid) is None
    assert await other.select(mqid) == tmq.UNUSABLE
    assert not await other.close_queue(mqid)
    assert await client.enq(mqid, b"mine")
    assert edge.refusals()["mqid_not_open"] == 4


async def test_closed_mqid_is_unusable_until_reopened(client: Client) -> None:
    # 2.3
    mqid = await client.queue(b"q")
    assert await client.close_queue(mqid)
    assert not await client.close_queue(mqid)
    assert not await client.enq(mqid, b"x")
    assert await client.open(b"q") == mqid
    assert await client.open(b"q") == mqid
    assert await client.close_queue(mqid)
    assert not await client.enq(mqid, b"opened twice is closed once")


async def test_deleted_queue_is_unusable(client: Client, other: Client) -> None:
    # 2.3: only while the queue exists
    mqid = await client.queue(b"q")
    assert await other.delete(b"q")
    assert not await client.enq(mqid, b"x")
    assert await client.dnq(mqid) is None
    assert await client.select(mqid) == tmq.UNUSABLE


async def test_mqid_is_case_sensitive(client: Client) -> None:
    # 2.2: 64 lower-case digits
    mqid = await client.queue(b"q")
    assert not await client.enq(mqid.upper(), b"x")


async def test_open_queues_are_limited(make_edge: MakeEdge) -> None:
    # 7.4: refused and counted; closing one makes room
    edge = await make_edge(max_open_queues=2)
    client = await edge.client()
    first, second = await client.queue(b"1"), await client.queue(b"2")
    assert await client.create(b"3")
    assert await client.open(b"3") is None
    assert await client.open(b"2") == second
    assert edge.refusals() == {"too_many_open": 1}
    assert await client.close_queue(first)
    assert await client.open(b"3") is not None
