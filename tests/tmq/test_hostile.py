"""Test changed, truncated and random input: the connection ends in time, others are unaffected."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterable
from random import Random

import pytest

from protos.tmq import encode_create, encode_dnq, encode_enq, encode_open, mqid_of
from services.store import QueueSpec
from tests.live import until
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge
from tests.tmq.vectors import VECTORS, Vector, every_vector

AT_ONCE = 16  # concurrent conversations
REQUEST_TIMEOUT_S = 0.5
EOF_GRACE_S = 0.02
# all codes, the first unused code, bytes that may follow a 5, and noise
CODES = [*range(11), 0x30, 0x3C, 0x61, 0xFF]


@pytest.fixture
async def brisk(make_edge: MakeEdge) -> AsyncIterator[LiveEdge]:
    """Yield an edge with short limits, which must still serve a well-behaved client at the end of the test."""
    edge = await make_edge(request_timeout_s=REQUEST_TIMEOUT_S, eof_grace_s=EOF_GRACE_S)
    yield edge
    await until(lambda: is_served(edge))
    edge.check_no_fault_of_ours()


@pytest.fixture
async def patient(make_edge: MakeEdge) -> AsyncIterator[LiveEdge]:
    """Yield an edge with long limits, for connections that must end only by FIN, however slow the machine is."""
    edge = await make_edge(eof_grace_s=EOF_GRACE_S)
    yield edge
    await until(lambda: is_served(edge))
    edge.check_no_fault_of_ours()


async def is_served(edge: LiveEdge) -> bool:
    """Return whether a client is served; on a busy machine the short limits may be exceeded."""
    client, mqid = await edge.client(), mqid_of(b"still there")
    try:
        await client.create(b"still there")
        is_open = await client.open(b"still there") == mqid
        await client.drain(mqid)
        is_put = all([await client.enq(mqid, body) for body in (b"one", b"two")])
        return is_open and is_put and await client.drain(mqid) == [b"one", b"two"]
    except EOFError:
        return False


@every_vector
async def test_changed_bytes_close_the_connection_or_are_answered(
    brisk: LiveEdge, vector: Vector, chance: Random
) -> None:
    # tmq.md 3.2, 3.3, 7.5: however the edge reads these bytes, the FIN after them ends the connection
    await all_of(ends_after_fin(brisk, vector.dialect, data) for data in mutations(vector, chance))


async def test_changed_byte_without_fin(brisk: LiveEdge, chance: Random) -> None:
    # tmq.md 7.3: unfinished requests are dropped after request_timeout; idle connections end with FIN
    changed = [(v.dialect, data) for v in VECTORS for data in chance.sample(mutations(v, chance), 4)]

    async def wait_out(dialect: str, data: bytes) -> None:
        client = await brisk.client(dialect)
        await client.send(data)
        await asyncio.sleep(2 * REQUEST_TIMEOUT_S)  # the time limit is under test
        client.fin()
        await until_over(client)

    await asyncio.gather(*(wait_out(dialect, data) for dialect, data in changed))


async def test_cancelled_requests_are_not_internal_errors(brisk: LiveEdge) -> None:
    # tmq.md 7.2: requests that exceed the limit may have been executed in part (checked by the fixture)
    spec = QueueSpec.model_validate({"ackLevel": "memory"})
    await brisk.tools.registry.claim("begun", "tmq", spec, replace=False)
    await brisk.tools.catalogue.declare("ended", spec, "tmq")
    ended = await brisk.tools.catalogue.find("ended")
    await brisk.tools.get_domain(ended.domain).delete(ended, "Delete")
    assert {queue.name async for queue in brisk.tools.listing.queues()} >= {"begun", "ended"}


async def test_requests_cut_short_by_fin(patient: LiveEdge) -> None:
    # tmq.md 3.3
    mqid = mqid_of(b"orders")
    for request in (
        encode_create(b"orders"),
        encode_open(b"orders"),
        encode_enq(mqid, b"hello"),
        encode_dnq(mqid),
    ):
        await all_of(ends_after_fin(patient, "document", request[:size]) for size in range(1, len(request)))
    # a 5 before a FIN is the only cut that is a valid request (3.1)
    assert patient.refusals()["truncated"] == sum((11, 11, 74, 65)) - 4 - 1


async def test_noise_closes_the_connection(brisk: LiveEdge, chance: Random) -> None:
    # tmq.md 3.2: most bytes are not codes
    noise = [chance.randbytes(chance.randrange(1, 3_000)) for _ in range(80)]
    await all_of(ends_after_fin(brisk, chance.choice(["document", "reference"]), data) for data in noise)
    assert brisk.refusals()["unknown_code"] > 25


async def test_noise_that_looks_like_requests(brisk: LiveEdge, chance: Random) -> None:
    # tmq.md 7.5: each request is well-formed, their order is random, and some are truncated
    wire = [exchange.send for vector in VECTORS for exchange in vector.conversation]
    talks = []
    for _ in range(50):
        requests = [chance.choice(wire) for _ in range(chance.randrange(1, 60))]
        if chance.random() < 0.5:
            requests[chance.randrange(len(requests))] = chance.randbytes(chance.randrange(1, 80))
        talks.append(b"".join(requests))
    await all_of(ends_after_fin(brisk, chance.choice(["document", "reference"]), talk) for talk in talks)


async def test_noise_torn_off_by_a_reset(brisk: LiveEdge, chance: Random) -> None:
    # tmq.md 6.1: a reset in any state; no lease remains (checked by the fixture)
    wire = [exchange.send for vector in VECTORS for exchange in vector.conversation]

    async def tear() -> None:
        client = await brisk.client(chance.choice(["document", "reference"]))
        data = b"".join(chance.choice(wire) for _ in range(chance.randrange(1, 40)))
        await client.send(data[: chance.randrange(1, len(data) + 1)])
        for _ in range(chance.randrange(20)):
            await asyncio.sleep(0)  # for this many turns of the event loop, which the edge shares
        client.reset()

    await all_of(tear() for _ in range(100))


def mutations(vector: Vector, chance: Random) -> list[bytes]:
    """Return conversations with one byte changed: some bytes of each request, each code to several others."""
    sends = [exchange.send for exchange in vector.conversation]
    found = []
    for index, send in enumerate(sends):
        changes = [(0, code) for code in chance.sample(CODES, 3)]
        changes += [(min(place, len(send) - 1), chance.randrange(256)) for place in (1, 65)]
        changes += [(chance.randrange(len(send)), chance.randrange(256)) for _ in range(2)]
        for place, value in changes:
            changed = send[:place] + bytes([value]) + send[place + 1 :]
            found.append(b"".join([*sends[:index], changed, *sends[index + 1 :]]))
    return found


async def ends_after_fin(edge: LiveEdge, listener: str, data: bytes) -> None:
    """Check that a connection ends after FIN, for any requests and replies before it."""
    client = await edge.client(listener)
    await client.send(data)
    client.fin()
    await until_over(client)


async def until_over(client: Client) -> None:
    with contextlib.suppress(ConnectionResetError):
        await client.rest()
    client.close()


async def all_of(talks: Iterable[Coroutine[None, None, None]]) -> None:
    """Run the conversations, AT_ONCE at a time."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def take_turn(talk: Coroutine[None, None, None]) -> None:
        async with turn:
            await talk

    await asyncio.gather(*(take_turn(talk) for talk in talks))
