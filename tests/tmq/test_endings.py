"""How a connection ends, in whatever state it was (tmq.md 5.4, 6.1): what was leased, and what is answered."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable

import pytest

from protos import tmq
from services.tmq.session import TmqSession
from tests.servers import Server
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge, until

Q, OTHER = tmq.mqid_of(b"q"), tmq.mqid_of(b"other")
THREE = [b"1", b"2", b"3"]


async def idle(client: Client) -> None:
    """Nothing asked."""


async def inside_a_name(client: Client) -> None:
    await client.send(tmq.encode_create(b"half")[:-2])


async def inside_a_body(client: Client) -> None:
    await client.send(tmq.encode_enq(Q, bytes(100_000))[:50_000])


async def inside_a_body_that_is_thrown_away(client: Client) -> None:
    await client.send(tmq.encode_enq(Q, bytes(2 << 20))[: 1 << 20])


async def behind_a_lone_five(client: Client) -> None:
    await client.send(b"\5")


async def enq_unanswered(client: Client) -> None:
    await client.send(tmq.encode_enq(OTHER, b"x") * 10)


async def dnq_unanswered(client: Client) -> None:
    await client.send(tmq.encode_dnq(Q) * 2)


async def dnq_unread(client: Client) -> None:
    await client.send(tmq.encode_dnq(Q))
    await until(lambda: client.has_unread())


async def dnq_read(client: Client) -> None:
    assert await client.dnq(Q) == b"1"


async def in_an_empty_transaction(client: Client) -> None:
    assert await client.ts()


async def in_a_transaction(client: Client) -> None:
    assert await client.ts()
    assert await client.messages(Q, 2) == [b"1", b"2"]
    assert await client.enq(OTHER, b"never")


async def dnq_unanswered_in_a_transaction(client: Client) -> None:
    await in_a_transaction(client)
    await client.send(tmq.encode_dnq(Q))


async def ta_unanswered(client: Client) -> None:
    await in_a_transaction(client)
    await client.send(b"\7")


async def create_unanswered(client: Client) -> None:
    await client.send(tmq.encode_create(b"new") + tmq.encode_open(b"new"))


async def select_unanswered(client: Client) -> None:
    await client.send(tmq.encode_select(Q))


async def everything_at_once(client: Client) -> None:
    await client.send(
        tmq.encode_dnq(Q),
        tmq.encode_enq(OTHER, b"x"),
        b"\x08",
        tmq.encode_dnq(Q),
        tmq.encode_open(b"q"),
        b"\5",
    )


STATES: list[Callable[[Client], Awaitable[None]]] = [
    idle,
    inside_a_name,
    inside_a_body,
    inside_a_body_that_is_thrown_away,
    behind_a_lone_five,
    enq_unanswered,
    dnq_unread,
    dnq_read,
    in_an_empty_transaction,
    in_a_transaction,
    dnq_unanswered_in_a_transaction,
    ta_unanswered,
    create_unanswered,
    select_unanswered,
]
# Here it depends on who is faster whether a request was answered, and so settled the one before.
RACES = [dnq_unanswered, everything_at_once]


def by_name(state: object) -> str:
    return str(getattr(state, "__name__", state))


async def sees(client: Client, mqid: bytes, count: int) -> bool:
    return await client.select(mqid) == count


async def prepared(edge: LiveEdge) -> tuple[Client, Client]:
    """A client that will end and one that looks on; three messages in q."""
    client, witness = await edge.client(), await edge.client()
    await witness.queue(b"q")
    await witness.queue(b"other")
    await client.queue(b"q")
    await client.queue(b"other")
    await client.put(Q, *THREE)
    return client, witness


@pytest.mark.parametrize("state", STATES, ids=by_name)
async def test_a_reset(edge: LiveEdge, state: Callable[[Client], Awaitable[None]]) -> None:
    # 6.1, 5.4: returns to the front what was not settled, and nothing kept is put
    client, witness = await prepared(edge)
    await state(client)
    client.reset()
    await until(lambda: len(edge.connections()) == 1)
    await until(lambda: sees(witness, Q, 3))
    assert await witness.drain(Q) == THREE
    assert set(await witness.drain(OTHER)) <= {b"x"}
    edge.check_no_fault_of_ours()


@pytest.mark.parametrize("state", RACES, ids=by_name)
async def test_a_reset_at_any_moment(edge: LiveEdge, state: Callable[[Client], Awaitable[None]]) -> None:
    # 6.1: whatever had been answered by then, a message is either settled or back in its place
    for turns in range(12):
        client, witness = await prepared(edge)
        await state(client)
        for _ in range(turns):
            await asyncio.sleep(0)
        client.reset()
        await until(lambda: len(edge.connections()) == 1)
        await until(lambda: nothing_leased(edge))
        found = await witness.drain(Q)
        assert found in (THREE, THREE[1:]), turns
        witness.close()
        await until(lambda: not edge.connections())


async def nothing_leased(edge: LiveEdge) -> bool:
    return bool((await edge.stats("q"))["in_flight"] == 0)


@pytest.mark.parametrize("state", [in_a_transaction, dnq_unanswered_in_a_transaction], ids=by_name)
async def test_a_fin_inside_a_transaction(edge: LiveEdge, state: Callable[[Client], Awaitable[None]]) -> None:
    # 5.4: a disconnect is an abort, however orderly
    client, witness = await prepared(edge)
    await state(client)
    client.fin()
    await client.rest()
    client.close()
    await until(lambda: sees(witness, Q, 3))
    assert await witness.drain(Q) == THREE
    assert await witness.drain(OTHER) == []


async def test_te_and_fin(edge: LiveEdge) -> None:
    # 5.3, 1.2: TE came before it, and is done and answered
    client, witness = await prepared(edge)
    await in_a_transaction(client)
    await client.send(b"\6")
    client.fin()
    assert await client.rest() == b"\0"
    assert await witness.drain(Q) == [b"3"]
    assert await witness.drain(OTHER) == [b"never"]


async def test_te_and_reset(edge: LiveEdge) -> None:
    # 5.3: whole or not at all, whether or not anybody hears of it
    for turns in range(8):
        client, witness = await prepared(edge)
        await in_a_transaction(client)
        await client.send(b"\6")
        for _ in range(turns):
            await asyncio.sleep(0)
        client.reset()
        await until(lambda: len(edge.connections()) == 1)
        await until(lambda: nothing_leased(edge))
        found = await witness.drain(Q), await witness.drain(OTHER)
        assert found in ((THREE, []), ([b"3"], [b"never"]))
        witness.close()
        await until(lambda: not edge.connections())


# FIN outside a transaction


async def test_a_fin_settles_what_was_read(edge: LiveEdge) -> None:
    # 6.1
    client, witness = await prepared(edge)
    await dnq_read(client)
    client.fin()
    assert await client.ended() == "fin"
    assert await witness.drain(Q) == THREE[1:]
    assert (await edge.stats("q"))["returned"] == 0


async def test_a_fin_that_cuts_a_request_short_settles_too(edge: LiveEdge) -> None:
    # 6.1, 3.3: every byte of the reply was acknowledged
    client, witness = await prepared(edge)
    await dnq_read(client)
    await client.send(tmq.encode_enq(OTHER, b"torn")[:-1])
    client.fin()
    assert await client.ended() == "fin"
    assert await witness.drain(Q) == THREE[1:]
    assert await witness.drain(OTHER) == []
    assert edge.refusals()["truncated"] == 1


async def test_replies_that_arrive_after_the_fin_are_settled_by_it(edge: LiveEdge) -> None:
    # 6.1: half-closed, all that was asked for is answered and read
    client, witness = await prepared(edge)
    await client.send(tmq.encode_dnq(Q) * 4)
    client.fin()
    expected = b"".join(tmq.encode_record(body) for body in THREE) + tmq.EMPTY
    assert await client.rest() == expected
    assert await witness.drain(Q) == []


async def test_a_program_that_ends_with_its_reply_unread(edge: LiveEdge) -> None:
    # 6.1: its system answers with a reset, although it has acknowledged the bytes
    client, witness = await prepared(edge)
    await dnq_unread(client)
    client.close()
    await until(lambda: sees(witness, Q, 3))
    assert await witness.drain(Q) == THREE


async def test_a_fin_and_then_a_reset_within_the_second(make_edge: MakeEdge) -> None:
    # 6.1: a half-closed program that ends with its reply unread
    edge = await make_edge()  # with the second of 6.1
    client, witness = await prepared(edge)
    await dnq_unread(client)
    client.fin()
    await until(lambda: any(connection._eof for connection in edge.connections()))
    client.close()
    await until(lambda: sees(witness, Q, 3))
    assert await witness.drain(Q) == THREE


async def test_a_reply_that_never_arrives_is_returned_in_the_end(make_edge: MakeEdge) -> None:
    # 6.1, 7.3: half-closed, with less unread than would hold the edge up; nothing moves, so it is over
    edge = await make_edge(eof_grace_s=0.1, request_timeout_s=0.5)
    client, witness = await edge.client(receive_buffer=4096), await edge.client()
    await client.queue(b"q")
    await witness.queue(b"q")
    await witness.put(Q, bytes(200_000))
    await client.send(tmq.encode_dnq(Q))
    client.fin()
    await until(lambda: sees(witness, Q, 1))
    assert edge.refusals()["replies_unread"] == 1
    assert [len(body) for body in await witness.drain(Q)] == [200_000]


@pytest.mark.parametrize("state", STATES, ids=by_name)
async def test_nothing_is_left_to_the_collector(
    edge: LiveEdge, state: Callable[[Client], Awaitable[None]]
) -> None:
    # thousands of connections come and go: their sessions are freed at once, or memory waits for a full collection
    client, witness = await prepared(edge)
    await state(client)
    gc.collect()
    gc.disable()
    try:
        client.reset()
        witness.close()
        await until(lambda: not edge.connections())
        await until(lambda: not any(isinstance(each, TmqSession) for each in gc.get_objects()))
    finally:
        gc.enable()


# the edge ends it


@pytest.mark.parametrize("state", [*STATES, *RACES], ids=by_name)
async def test_a_drain(edge: LiveEdge, state: Callable[[Client], Awaitable[None]]) -> None:
    # 5.4, 6.1: every connection ends; nothing is left leased, nothing counts as the consumer's failure
    client, witness = await prepared(edge)
    witness.close()
    await until(lambda: len(edge.connections()) == 1)
    await state(client)
    (listener,) = (listener for listener in edge.listeners.values() if listener.connections)
    await listener.drain(0.0)
    await client.rest()
    client.close()
    assert await listener.closed(10)
    await until(lambda: nothing_leased(edge))
    stats = await edge.stats("q")
    assert stats["dead_letters"] == 0
    assert stats["ready"] + stats["acked"] == 3


async def test_a_drain_while_the_store_is_asked(own_server: Server, make_edge: MakeEdge) -> None:
    # 1.2: what has come in is answered, then it is closed
    edge = await make_edge(own_server.url)
    client = await edge.client()
    await client.queue(b"q")
    own_server.stop()
    try:
        await edge.deliver("document", client, tmq.encode_enq(Q, b"x"))
        await edge.listeners["document"].drain(0.0)
    finally:
        own_server.cont()
    assert await client.rest() == b"\1"
