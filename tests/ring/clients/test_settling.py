"""Settlement or return of pulled messages (ring.md 5.2, tmq.md 6)."""

from __future__ import annotations

import asyncio

import pytest

from tests.live import until
from tests.ring.clients.client import ERROR, OK, Client, create, destroy, pull, push
from tests.ring.clients.conftest import MakeEdge
from tests.ring.clients.live import CLIENTS, LiveClients

MIB = 1 << 20
THREE = [b"1", b"2", b"3"]


async def settled(edge: LiveClients, name: str, count: int) -> bool:
    return bool((await edge.stats(name))["acked"] == count)


async def ready(edge: LiveClients, name: str, count: int) -> bool:
    return bool((await edge.stats(name))["ready"] == count)


async def prepared(edge: LiveClients) -> tuple[Client, Client]:
    """Return a client that will end and another that observes; q has three messages."""
    client, witness = await edge.client(), await edge.client()
    await witness.create(b"q")
    await client.push(b"q", *THREE)
    return client, witness


# --- the next request


@pytest.mark.parametrize(
    ("request_of", "name"),
    [(create, b"new"), (destroy, b"missing"), (pull, b"q"), (pull, b"missing"), (push, b"ring/x")],
)
async def test_next_request_settles_even_if_it_fails(
    edge: LiveClients, request_of: object, name: bytes
) -> None:
    """Check that the next request settles, even if it fails (5.2)."""
    assert callable(request_of)
    client, _ = await prepared(edge)
    assert await client.pull(b"q") == b"1"
    assert (await edge.stats("q"))["in_flight"] == 1
    await client.send(request_of(name, b"x") if request_of is push else request_of(name))
    await client.reply(name)
    await until(lambda: settled(edge, "q", 1))


async def test_an_unfinished_request_settles_nothing(edge: LiveClients) -> None:
    """Check that an incomplete request settles nothing (tmq.md 6.1)."""
    client, witness = await prepared(edge)
    assert await client.pull(b"q") == b"1"
    await edge.deliver(CLIENTS, client, push(b"q", b"torn")[:-1])
    client.reset()
    await until(lambda: ready(edge, "q", 3))
    assert await witness.drain(b"q") == THREE


async def test_a_refused_request_settles_nothing(edge: LiveClients) -> None:
    """Check that a complete but invalid request settles nothing (tmq.md 6.1)."""
    client, witness = await prepared(edge)
    assert await client.pull(b"q") == b"1"
    await client.send(push(b"q", bytes(MIB + 1)))
    assert (await client.reply(b"q")).operation is ERROR
    assert (await edge.stats("q"))["in_flight"] == 1
    client.reset()
    await until(lambda: ready(edge, "q", 3))
    assert await witness.drain(b"q") == THREE


async def test_an_unknown_operation_settles_nothing(edge: LiveClients) -> None:
    """Check that an unknown operation settles nothing (5.6, tmq.md 6.1)."""
    client, witness = await prepared(edge)
    assert await client.pull(b"q") == b"1"
    await client.send(b"\0\0\0\7")
    assert await client.ended() == "fin"
    await until(lambda: ready(edge, "q", 3))
    assert await witness.drain(b"q") == THREE


async def test_next_request_settles_many_messages(edge: LiveClients) -> None:
    """Check that the next request settles all messages pulled before it (5.2)."""
    client, witness = await prepared(edge)
    assert await client.messages(b"q", 3) == THREE
    assert (await edge.stats("q"))["in_flight"] == 3
    assert await client.pull(b"q") is None
    await until(lambda: settled(edge, "q", 3))
    assert await witness.drain(b"q") == []


async def test_max_unsettled_is_enforced(make_edge: MakeEdge) -> None:
    """Check that max_unsettled is enforced (5.8)."""
    edge = await make_edge(clients={"max_unsettled": 3})
    client = await edge.client()
    await client.create(b"q")
    await client.push(b"q", *(b"%d" % n for n in range(5)))
    await client.send(pull(b"q", 5))
    replies = await client.replies(b"q", 5)
    assert [reply.message for reply in replies[:3]] == [b"0", b"1", b"2"]
    assert {(r.operation, r.message) for r in replies[3:]} == {
        (ERROR, b"too many messages are unsettled: the next request settles them")
    }
    assert edge.refusals() == {"too_many_unsettled": 1}
    assert await client.drain(b"q") == [b"3", b"4"]


# --- the connection breaks


async def test_message_returns_to_its_place_after_a_reset(edge: LiveClients) -> None:
    """Check that after a reset a message returns to its place (5.2)."""
    client, witness = await prepared(edge)
    assert await client.pull(b"q") == b"1"
    client.reset()
    await until(lambda: ready(edge, "q", 3))
    assert await witness.drain(b"q") == THREE


async def test_unread_reply_at_process_exit_returns_the_message(edge: LiveClients) -> None:
    """Check that a message returns if the client's process exits with the reply unread.

    tmq.md 6.1: its system answers with a reset, although it has acknowledged the octets.
    """
    client, witness = await prepared(edge)
    await client.send(pull(b"q"))
    await until(lambda: client.has_unread())
    client.close()
    await until(lambda: ready(edge, "q", 3))
    assert await witness.drain(b"q") == THREE


async def test_message_returns_if_the_client_left_before_it_came(edge: LiveClients) -> None:
    """Check that a message returns if the client left before the reply was sent (tmq.md 6.2)."""
    _, witness = await prepared(edge)
    for turns in range(20):
        hasty = await edge.client()
        await hasty.send(pull(b"q"), pull(b"q", sender=b"another"))
        for _ in range(turns // 2):
            await asyncio.sleep(0)
        hasty.reset()
    await until(lambda: len(edge.connections()) == 2)
    # the first was settled if the second was handled before the reset arrived
    await until(lambda: nothing_leased(edge))
    left = await witness.drain(b"q")
    assert left == THREE[3 - len(left) :]


async def nothing_leased(edge: LiveClients) -> bool:
    return bool((await edge.stats("q"))["in_flight"] == 0)


async def test_reset_at_any_moment_after_a_pull(edge: LiveClients) -> None:
    """Check that a reset at any moment after a pull returns the message: nothing had settled it (tmq.md 6.2)."""
    _, witness = await prepared(edge)
    for turns in range(20):
        hasty = await edge.client()
        await hasty.send(pull(b"q"))
        for _ in range(turns):
            await asyncio.sleep(0)
        hasty.reset()
        await until(lambda: len(edge.connections()) == 2)
    await until(lambda: nothing_leased(edge))
    assert await witness.drain(b"q") == THREE


# --- it ends with FIN


async def test_a_fin_settles_what_was_read(edge: LiveClients) -> None:
    """Check that a FIN settles messages that were read (5.2)."""
    client, witness = await prepared(edge)
    assert await client.pull(b"q") == b"1"
    client.fin()
    assert await client.ended() == "fin"
    assert await witness.drain(b"q") == THREE[1:]
    assert (await edge.stats("q"))["returned"] == 0


async def test_fin_inside_a_request_settles(edge: LiveClients) -> None:
    """Check that a FIN inside a request settles earlier messages (5.6, tmq.md 6.1)."""
    client, witness = await prepared(edge)
    assert await client.pull(b"q") == b"1"
    await client.send(push(b"q", b"torn")[:-1])
    client.fin()
    assert await client.ended() == "fin"
    assert await witness.drain(b"q") == THREE[1:]
    assert edge.refusals() == {"truncated": 1}


async def test_reset_soon_after_a_fin_returns_the_message(make_edge: MakeEdge) -> None:
    """Check that a reset soon after a FIN returns the message.

    tmq.md 6.1: a half-closed program ends with its reply unread.
    """
    edge = await make_edge()  # with the one second of tmq.md 6.1
    client, witness = await prepared(edge)
    await client.send(pull(b"q"))
    await until(lambda: client.has_unread())
    client.fin()
    client.close()
    await until(lambda: ready(edge, "q", 3))
    assert await witness.drain(b"q") == THREE


async def test_requests_before_a_fin_are_answered(edge: LiveClients) -> None:
    """Check that requests before a FIN are answered (5.2)."""
    client, witness = await prepared(edge)
    await client.send(pull(b"q", 4), create(b"late"), push(b"late", b"x"))
    client.fin()
    replies = [*await client.replies(b"q", 4), *await client.replies(b"late", 2)]
    assert [reply.operation for reply in replies] == [OK, OK, OK, ERROR, OK, OK]
    assert await client.ended() == "fin"
    assert await witness.drain(b"q") == []
    assert await witness.drain(b"late") == [b"x"]


async def test_fin_does_not_settle_undelivered_messages(make_edge: MakeEdge) -> None:
    """Check that a FIN does not settle undelivered messages.

    tmq.md 6.1: the connection is half-closed, with less unread than would block the edge.
    """
    edge = await make_edge(clients={"eof_grace_s": 0.1}, request_timeout_s=0.5)
    client, witness = await edge.client(receive_buffer=4096), await edge.client()
    await witness.create(b"q")
    await witness.push(b"q", bytes(200_000))
    await client.send(pull(b"q"))
    client.fin()
    await until(lambda: ready(edge, "q", 1))
    assert edge.refusals()["replies_unread"] == 1
    assert [len(body) for body in await witness.drain(b"q")] == [200_000]


# --- the edge closes it


@pytest.mark.parametrize("inside", [b"", push(b"q", bytes(1_000))[:-1], push(b"q", b"x"), pull(b"q", 2)])
async def test_a_drain(edge: LiveClients, inside: bytes) -> None:
    """Check that a drain closes all connections and returns unsettled messages without a failed delivery (5.2)."""
    client, witness = await prepared(edge)
    witness.close()
    await until(lambda: len(edge.connections()) == 1)
    assert await client.pull(b"q") == b"1"
    await edge.deliver(CLIENTS, client, *([inside] if inside else []))
    listener = edge.listeners[CLIENTS]
    await listener.drain(0.0)
    await client.rest()
    client.close()
    assert await listener.closed(10)
    await until(lambda: nothing_leased(edge))
    stats = await edge.stats("q")
    assert stats["dead_letters"] == 0
    pushed = inside == push(b"q", b"x")
    assert stats["ready"] + stats["acked"] == 3 + pushed


async def test_message_becomes_dead_letter_after_max_deliveries(edge: LiveClients) -> None:
    """Check that a message becomes a dead letter after max_deliveries, and so cannot crash all readers (5.2)."""
    await edge.declare("q", max_deliveries=3)
    witness = await edge.client()
    await witness.push(b"q", b"poison", b"next")
    for _ in range(3):
        client = await edge.client()
        assert await client.pull(b"q") == b"poison"
        client.reset()
        await until(lambda: nothing_leased(edge))
    assert await witness.drain(b"q") == [b"next"]
    assert (await edge.stats("q"))["dead_letters"] == 1
