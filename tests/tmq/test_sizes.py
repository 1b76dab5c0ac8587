"""Test the limits of messages (tmq.md 7.1)."""

from __future__ import annotations

import struct

import pytest

from protos import tmq
from tests.live import until
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge

MIB = 1 << 20
OK, FAILED = b"\1", b"\0"  # replies to ENQ (3)


def head(mqid: bytes, size: int) -> bytes:
    """Return the start of an ENQ that announces this many bytes."""
    return b"\4" + mqid + struct.pack(">I", size)


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 65_537, MIB])
async def test_message_up_to_1_mib_is_unchanged(client: Client, size: int) -> None:
    # 7.1
    mqid = await client.queue(b"q")
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert await client.enq(mqid, body)
    assert await client.dnq(mqid) == body


@pytest.mark.parametrize("size", [MIB + 1, 16 * MIB])
async def test_message_up_to_16_mib_is_skipped_and_fails(
    edge: LiveEdge, client: Client, other: Client, size: int
) -> None:
    # 7.1: answered once the body was read; it is never stored, and the next request follows it
    mqid = await client.queue(b"q")
    await client.send(head(mqid, size))
    left = size - 1
    while left:
        piece = min(left, MIB)
        await edge.deliver("document", client, bytes(piece))
        left -= piece
        assert edge.budget.total < 512, "a body that will be skipped is held in memory"
    assert await client.is_silent(0.05)
    await client.send(b"x" + tmq.encode_enq(mqid, b"next"))
    assert await client.read(2) == FAILED + OK
    assert await other.drain(await other.queue(b"q")) == [b"next"]
    assert edge.refusals()["message_too_large"] == 1


@pytest.mark.parametrize("size", [16 * MIB + 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
async def test_message_above_16_mib_fails_and_closes_the_connection(
    edge: LiveEdge, client: Client, other: Client, size: int
) -> None:
    # 7.1: nothing after it is read; a negative length, read as unsigned, is at least 2 GiB
    mqid = await client.queue(b"q")
    await client.send(tmq.encode_enq(mqid, b"before") + head(mqid, size) + tmq.encode_enq(mqid, b"behind"))
    assert await client.rest() == OK + FAILED
    assert await other.drain(await other.queue(b"q")) == [b"before"]
    assert edge.refusals()["message_too_large"] == 1


async def test_in_the_reference_failed_is_1(edge: LiveEdge) -> None:
    # 7.1, 4.1
    client = await edge.client("reference")
    mqid = await client.queue(b"q")
    await client.send(head(mqid, 16 * MIB + 1))
    assert await client.rest() == b"\1"


async def test_limit_of_unsettled_replies_is_a_setting(make_edge: MakeEdge) -> None:
    # 7.1
    edge = await make_edge(max_message_bytes=10)
    client = await edge.client()
    mqid = await client.queue(b"q")
    assert await client.enq(mqid, bytes(10))
    assert not await client.enq(mqid, bytes(11))
    assert await client.drain(mqid) == [bytes(10)]


async def test_too_large_message_for_an_unopened_queue(edge: LiveEdge, client: Client) -> None:
    # 7.1: the size is checked first, and the body is still read
    await client.send(head(b"0" * 64, MIB + 1) + bytes(MIB + 1) + b"\6")
    assert await client.read(2) == FAILED + b"\1"
    assert edge.refusals()["message_too_large"] == 1


async def test_too_large_message_settles_nothing(edge: LiveEdge, client: Client, other: Client) -> None:
    # 6.1: complete, but invalid
    mqid = await client.queue(b"q")
    await client.put(mqid, b"1")
    assert await client.dnq(mqid) == b"1"
    assert not await client.enq(mqid, bytes(MIB + 1))
    assert (await edge.stats("q"))["in_flight"] == 1
    client.reset()
    theirs = await other.queue(b"q")
    await until(lambda: other_sees(other, theirs, 1))
    assert await other.drain(theirs) == [b"1"]


async def other_sees(other: Client, mqid: bytes, count: int) -> bool:
    return await other.select(mqid) == count


async def test_too_large_message_inside_a_transaction(client: Client) -> None:
    # 7.1, 5.2: that request fails, the transaction continues
    mqid = await client.queue(b"q")
    assert await client.ts()
    assert await client.enq(mqid, b"1")
    assert not await client.enq(mqid, bytes(MIB + 1))
    assert await client.enq(mqid, b"2")
    assert await client.te()
    assert await client.drain(mqid) == [b"1", b"2"]


async def test_memory_of_all_transactions_is_limited(make_edge: MakeEdge) -> None:
    # 5.2, 7.3: buffered ENQs of transactions count towards the memory for input
    edge = await make_edge(budget=5 * MIB)
    clients = [await edge.client() for _ in range(4)]
    mqid = await clients[0].queue(b"q")
    for client in clients[1:]:
        await client.queue(b"q")
    for client in clients:
        assert await client.ts()
    hog, *others = clients
    assert [await client.enq(mqid, bytes(900_000)) for client in (*others, hog, hog)] == [True] * 5
    assert 4_500_000 <= edge.budget.total <= 5 * MIB
    with pytest.raises((ConnectionError, EOFError)):
        await hog.enq(mqid, bytes(900_000))
    assert edge.refusals()["input_budget"] == 1
    assert [await client.te() for client in others] == [True] * 3
    assert edge.budget.total == 0
    assert len(await others[0].drain(mqid)) == 3


async def test_memory_of_unfinished_bodies_is_limited(make_edge: MakeEdge) -> None:
    # 7.3: the connection that holds most is closed, the others are unaffected
    edge = await make_edge(budget=3 * MIB)
    clients = [await edge.client() for _ in range(6)]
    mqid = b""
    for client in clients:
        mqid = await client.queue(b"q")
    for number, client in enumerate(clients[:5]):
        await client.send(head(mqid, MIB) + bytes(MIB - 100 - number))
    assert await clients[5].enq(mqid, b"unharmed")
    assert edge.budget.total <= 3 * MIB
    ends = 0
    for client in clients[:5]:
        try:
            await client.send(bytes(105))
            ends += await client.read(1) != OK
        except (ConnectionError, EOFError):
            ends += 1
    assert ends == edge.refusals()["input_budget"] >= 2
