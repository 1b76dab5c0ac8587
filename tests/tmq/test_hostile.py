"""What no client should send: changed, cut short, or noise. The connection ends in its time, the others go on."""

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

AT_ONCE = 16  # conversations side by side
REQUEST_TIMEOUT_S = 0.5
EOF_GRACE_S = 0.02
CODES = [
    *range(11),
    0x30,
    0x3C,
    0x61,
    0xFF,
]  # all codes, the first that is none, what may follow a 5, and noise


@pytest.fixture
async def brisk(make_edge: MakeEdge) -> AsyncIterator[LiveEdge]:
    """An edge with short limits; when the test is over, a well-behaved client must still be served."""
    edge = await make_edge(request_timeout_s=REQUEST_TIMEOUT_S, eof_grace_s=EOF_GRACE_S)
    yield edge
    await until(lambda: is_served(edge))
    edge.check_no_fault_of_ours()


@pytest.fixture
async def patient(make_edge: MakeEdge) -> AsyncIterator[LiveEdge]:
    """The same for what ends by FIN alone: however slow the machine is, nothing ends for being slow."""
    edge = await make_edge(eof_grace_s=EOF_GRACE_S)
    yield edge
    await until(lambda: is_served(edge))
    edge.check_no_fault_of_ours()


async def is_served(edge: LiveEdge) -> bool:
    """False if the short limits were too short for it, as on a busy machine: then something is refused, or it ends."""
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
async def test_any_byte_changed(brisk: LiveEdge, vector: Vector, chance: Random) -> None:
    # tmq.md 3.2, 3.3, 7.5: whatever it makes of the conversation, with FIN behind it the connection ends
    await all_of(ends_after_fin(brisk, vector.dialect, data) for data in mutations(vector, chance))


async def test_a_changed_byte_and_no_fin(brisk: LiveEdge, chance: Random) -> None:
    # tmq.md 7.3: unfinished requests are given up after request_timeout; what is left is idle, and ends with FIN
    changed = [(v.dialect, data) for v in VECTORS for data in chance.sample(mutations(v, chance), 4)]

    async def wait_out(dialect: str, data: bytes) -> None:
        client = await brisk.client(dialect)
        await client.send(data)
        await asyncio.sleep(2 * REQUEST_TIMEOUT_S)  # the time limit is what is tested
        client.fin()
        await until_over(client)

    await asyncio.gather(*(wait_out(dialect, data) for dialect, data in changed))


async def test_what_is_given_up_half_way_is_no_fault_of_ours(brisk: LiveEdge) -> None:
    # tmq.md 7.2: what takes longer than the limit may have been done in part (checked by the fixture)
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
    # a 5 and FIN is the one cut that is a request (3.1)
    assert patient.refusals()["truncated"] == sum((11, 11, 74, 65)) - 4 - 1


async def test_noise(brisk: LiveEdge, chance: Random) -> None:
    # tmq.md 3.2: most of it is no code at all
    noise = [chance.randbytes(chance.randrange(1, 3_000)) for _ in range(80)]
    await all_of(ends_after_fin(brisk, chance.choice(["document", "reference"]), data) for data in noise)
    assert brisk.refusals()["unknown_code"] > 25


async def test_noise_that_looks_like_requests(brisk: LiveEdge, chance: Random) -> None:
    # tmq.md 7.5: every request well-formed by itself, in no order at all, now and then one torn
    wire = [exchange.send for vector in VECTORS for exchange in vector.conversation]
    talks = []
    for _ in range(50):
        requests = [chance.choice(wire) for _ in range(chance.randrange(1, 60))]
        if chance.random() < 0.5:
            requests[chance.randrange(len(requests))] = chance.randbytes(chance.randrange(1, 80))
        talks.append(b"".join(requests))
    await all_of(ends_after_fin(brisk, chance.choice(["document", "reference"]), talk) for talk in talks)


async def test_noise_torn_off_by_a_reset(brisk: LiveEdge, chance: Random) -> None:
    # tmq.md 6.1: a reset in whatever state; nothing stays leased (checked by the fixture)
    wire = [exchange.send for vector in VECTORS for exchange in vector.conversation]

    async def tear() -> None:
        client = await brisk.client(chance.choice(["document", "reference"]))
        data = b"".join(chance.choice(wire) for _ in range(chance.randrange(1, 40)))
        await client.send(data[: chance.randrange(1, len(data) + 1)])
        for _ in range(chance.randrange(20)):
            await asyncio.sleep(0)  # so many turns of the loop that the edge shares
        client.reset()

    await all_of(tear() for _ in range(100))


def mutations(vector: Vector, chance: Random) -> list[bytes]:
    """The conversation with one byte changed: some bytes of each request, each code to several others."""
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
    """Everything sent ahead, then FIN: whatever was answered, the end comes."""
    client = await edge.client(listener)
    await client.send(data)
    client.fin()
    await until_over(client)


async def until_over(client: Client) -> None:
    with contextlib.suppress(ConnectionResetError):
        await client.rest()
    client.close()


async def all_of(talks: Iterable[Coroutine[None, None, None]]) -> None:
    """Some at a time."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def take_turn(talk: Coroutine[None, None, None]) -> None:
        async with turn:
            await talk

    await asyncio.gather(*(take_turn(talk) for talk in talks))
