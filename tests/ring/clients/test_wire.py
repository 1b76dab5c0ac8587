"""Wire errors: each row of 5.6, lengths and random octets; the connection ends in time, others continue."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterable
from random import Random

import pytest

from protos.ring import REFUSALS
from tests.live import until
from tests.ring.clients.client import ERROR, OK, Client, Reply, create, destroy, pull, push
from tests.ring.clients.conftest import MakeEdge
from tests.ring.clients.live import CLIENTS, LiveClients

MIB = 1 << 20
DONE = Reply(OK, b"")
LABELS = ("create_queue", "push", "pull", "destroy_queue")  # names of the operations 0 to 3
AT_ONCE = 16  # parallel conversations


def request(operation: int, queue: bytes, size: int) -> bytes:
    """Return a request's head with this queue_id field, announcing `size` octets of message."""
    return operation.to_bytes(4, "big") + b"me".ljust(255, b"\0") + queue + size.to_bytes(4, "big")


# --- the rows of 5.6


@pytest.mark.parametrize(
    ("operation", "reason", "field", "size"),
    [
        (0, "empty_queue_name", bytes(255), 3),
        (1, "empty_queue_name", b"\0q".ljust(255, b"\0"), 0),
        (2, "endless_queue_name", b"q" * 255, 3),
        (3, "endless_queue_name", b"q" * 255, 0),
        (1, "message_too_large", b"q".ljust(255, b"\0"), 101),
        (2, "message_too_large", b"q".ljust(255, b"\0"), 16 * MIB + 1),
    ],
)
async def test_a_refused_request(
    make_edge: MakeEdge, operation: int, reason: str, field: bytes, size: int
) -> None:
    """Check that a refused request is answered, counted, and logged once a connection.

    5.6: earlier requests are done, and later ones unless it closes the connection.
    """
    edge = await make_edge(clients={"max_message_bytes": 100})
    client = await edge.client()
    await client.create(b"q")
    closes = size > 16 * MIB
    wire = request(operation, field, size)
    await client.send(push(b"q", b"before"), wire, b"" if closes else bytes(size) + push(b"q", b"behind"))
    assert await client.reply(b"q") == DONE
    head = await client.read(518)
    assert head == ERROR.to_bytes(4, "big") + wire[4:-4] + len(REFUSALS[reason]).to_bytes(4, "big")
    assert (await client.read(len(REFUSALS[reason]))).decode() == REFUSALS[reason]
    if closes:
        assert await client.ended() in ("fin", "reset")
    else:
        assert await client.reply(b"q") == DONE
    assert edge.refusals() == {reason: 1}
    assert await edge.requests(LABELS[operation], "failed") == 1
    (line,) = edge.log.events("refused", reason=reason)
    assert line.__dict__["peer"] == "{}:{}".format(*client.address)
    other = await edge.client()
    assert await other.drain(b"q") == [b"before", b"behind"][: 1 if closes else 2]


@pytest.mark.parametrize("operation", [4, 5, 6, 0x100, 0x01000000, 0xFFFFFFFF])
async def test_unknown_operation_closes_the_connection(
    edge: LiveClients, client: Client, operation: int
) -> None:
    """Check that an unknown operation closes the connection.

    5.6: earlier requests are carried out and answered; later ones are not.
    """
    await client.create(b"q")
    unknown = operation.to_bytes(4, "big")
    await client.send(
        push(b"q", b"1"), pull(b"q"), push(b"q", b"2"), create(b"made"), unknown, push(b"q", b"3")
    )
    replies = [*await client.replies(b"q", 3), await client.reply(b"made")]
    assert [reply.operation for reply in replies] == [OK] * 4
    assert await client.ended() in ("fin", "reset")
    assert edge.refusals() == {"unknown_operation": 1}
    (line,) = edge.log.events("refused", reason="unknown_operation")
    assert line.__dict__["detail"] == str(operation)
    other = await edge.client()
    await until(lambda: free(edge))
    assert await other.drain(b"q") in ([b"1", b"2"], [b"2"])  # the pull was settled by the push behind it
    assert await other.pull(b"made") is None


async def free(edge: LiveClients) -> bool:
    return bool((await edge.stats("q"))["in_flight"] == 0)


async def test_fin_inside_a_request_closes_unanswered(edge: LiveClients) -> None:
    """Check that a FIN at any octet of a request closes unanswered, and earlier requests are answered (5.6)."""
    whole, torn = push(b"q", b"whole"), push(b"q", b"torn")
    first = await edge.client()
    await first.create(b"q")

    async def cut(size: int) -> None:
        client = await edge.client()
        await client.send(whole, torn[:size])
        client.fin()
        assert await client.reply(b"q") == DONE
        assert await client.ended() == "fin"
        client.close()

    await all_of(cut(size) for size in range(1, len(torn)))
    assert edge.refusals() == {"truncated": len(torn) - 1}
    assert await edge.requests("push", "ok") == len(torn) - 1
    assert set(await first.drain(b"q")) == {b"whole"}


@pytest.mark.parametrize(
    "begun", [b"\0", push(b"q", b"x")[:300], push(b"q", bytes(900))[:-1], push(b"q", bytes(2 * MIB))[:MIB]]
)
async def test_unfinished_request_times_out(make_edge: MakeEdge, begun: bytes) -> None:
    """Check that an incomplete request times out, also one that is being discarded (5.6)."""
    edge = await make_edge(request_timeout_s=0.3)
    client = await edge.client()
    await client.create(b"q")
    await client.send(push(b"q", b"1"), begun)
    assert await client.reply(b"q") == DONE
    assert await client.ended() in ("fin", "reset")
    assert edge.refusals() == {"request_timeout": 1}


async def test_idle_client_stays_connected(make_edge: MakeEdge) -> None:
    """Check that an idle client stays connected: the timeout applies to requests only (5.6)."""
    edge = await make_edge(request_timeout_s=0.2)
    client = await edge.client()
    await client.create(b"q")
    assert await client.is_silent(0.5)
    await client.push(b"q", b"1")


# --- lengths


@pytest.mark.parametrize("size", [MIB + 1, 16 * MIB])
async def test_discarded_message_is_never_buffered(edge: LiveClients, client: Client, size: int) -> None:
    """Check that a discarded message is never buffered, and is answered at its end (5.6)."""
    await client.create(b"q")
    await client.send(request(1, b"q".ljust(255, b"\0"), size))
    left = size - 1
    while left:
        piece = min(left, MIB)
        await edge.deliver(CLIENTS, client, bytes(piece))
        left -= piece
        assert edge.budget.total < 1024
    assert await client.is_silent(0.05)
    await client.send(b"x" + push(b"q", b"next"))
    assert (await client.read(518))[:4] == bytes([0, 0, 0, 4])
    assert await client.read(20) == b"message is too large"
    assert await client.reply(b"q") == DONE
    assert await client.drain(b"q") == [b"next"]


@pytest.mark.parametrize("size", [16 * MIB + 1, 0x80000000, 0xFFFFFFFF])
async def test_message_beyond_the_discard_limit_is_refused_at_once(edge: LiveClients, size: int) -> None:
    """Check that a message above the discard limit is refused without waiting for its octets (5.6)."""
    client = await edge.client()
    await client.send(request(1, b"q".ljust(255, b"\0"), size))
    assert (await client.read(518 + 20))[-20:] == b"message is too large"
    assert await client.ended() == "fin"


async def test_memory_of_unfinished_messages_is_bounded(make_edge: MakeEdge) -> None:
    """Check that the memory of incomplete messages is bounded: the connection that holds most is closed (5.2)."""
    edge = await make_edge(budget=3 * MIB)
    clients = [await edge.client() for _ in range(6)]
    await clients[5].create(b"q")
    whole = push(b"q", bytes(MIB))
    for number, client in enumerate(clients[:5]):
        await client.send(whole[: -100 - number])
    await clients[5].push(b"q", b"unharmed")
    assert edge.budget.total <= 3 * MIB
    ends = 0
    for client in clients[:5]:
        try:
            await client.send(bytes(105))
            ends += (await client.reply(b"q")).operation is not OK
        except (ConnectionError, EOFError):
            ends += 1
    assert ends == edge.refusals()["input_budget"] >= 2


async def test_messages_are_never_logged(edge: LiveClients, client: Client) -> None:
    """Check that logs contain reasons and peers but never messages (5.6)."""
    secret = b"s3cr3t-payload"
    await client.create(b"q")
    await client.push(b"q", secret)
    await client.send(push(b"missing", secret) + b"\xfe" + secret)
    assert (await client.reply(b"missing")).operation is ERROR
    assert await client.ended() in ("fin", "reset")
    assert edge.log.lines
    assert not [line for line in edge.log.lines if secret.decode() in str(line.__dict__)]


# --- random octets


@pytest.fixture
async def brisk(make_edge: MakeEdge) -> AsyncIterator[LiveClients]:
    """Start an edge with a short wait for FINs; at the end a well-behaved client must still be served."""
    edge = await make_edge(clients={"eof_grace_s": 0.02})
    yield edge
    client = await edge.client()
    await client.create(b"still there")
    await client.push(b"still there", b"one", b"two")
    assert await client.drain(b"still there") == [b"one", b"two"]
    edge.check_no_fault_of_ours()


def talk(chance: Random) -> list[bytes]:
    """Draw valid requests in any order."""
    names = [b"a", b"b", b"ring/x", b"\xff" * 254]
    makers = [
        create,
        destroy,
        lambda name: pull(name, chance.randrange(1, 5)),
        lambda name: push(name, *[chance.randbytes(chance.randrange(9))] * chance.randrange(1, 5)),
    ]
    return [chance.choice(makers)(chance.choice(names)) for _ in range(chance.randrange(1, 30))]


async def test_requests_with_a_changed_octet_do_no_harm(brisk: LiveClients, chance: Random) -> None:
    """Check that a conversation with a changed octet and a FIN ends (5.6)."""
    talks = []
    for _ in range(60):
        data = bytearray(b"".join(talk(chance)))
        start = chance.randrange(0, len(data), 518) if chance.random() < 0.5 else chance.randrange(len(data))
        for _ in range(chance.randrange(1, 4)):
            data[min(start + chance.choice([0, 3, 4, 259, 514, 517]), len(data) - 1)] = chance.randrange(256)
        talks.append(bytes(data))
    await all_of(ends_after_fin(brisk, data) for data in talks)


async def test_random_octets_do_no_harm(brisk: LiveClients, chance: Random) -> None:
    """Check that random octets, mostly invalid operations, do no harm (5.6)."""
    noise = [chance.randbytes(chance.randrange(1, 3_000)) for _ in range(60)]
    await all_of(ends_after_fin(brisk, data) for data in noise)
    assert brisk.refusals()["unknown_operation"] > 20


async def test_reset_inside_a_request_is_harmless(brisk: LiveClients, chance: Random) -> None:
    """Check that a reset inside a request in any state leaves nothing leased (5.2; checked by the fixture)."""

    async def tear() -> None:
        client = await brisk.client()
        data = b"".join(talk(chance))
        await client.send(data[: chance.randrange(1, len(data) + 1)])
        for _ in range(chance.randrange(20)):
            await asyncio.sleep(0)  # turns of the event loop that the edge shares
        client.reset()

    await all_of(tear() for _ in range(60))


async def ends_after_fin(edge: LiveClients, data: bytes) -> None:
    """Send everything and a FIN; check that the connection ends."""
    client = await edge.client()
    with contextlib.suppress(ConnectionError):
        await client.send(data)
        client.fin()
        await client.rest()
    client.close()


async def all_of(talks: Iterable[Coroutine[None, None, None]]) -> None:
    """Send all octets in pieces."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def take_turn(one: Coroutine[None, None, None]) -> None:
        async with turn:
            await one

    await asyncio.gather(*(take_turn(one) for one in talks))
