"""Ends of sessions in each state: nothing of a session remains (ring.md 5.2)."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable

import pytest

from services.ring.clients.session import ClientSession
from tests.live import until
from tests.ring.clients.client import Client, create, destroy, pull, push
from tests.ring.clients.live import LiveClients


async def idle(client: Client) -> None:
    """Leave the session without any request."""


async def inside_a_request(client: Client) -> None:
    await client.send(push(b"q", bytes(100_000))[:50_000])


async def inside_a_message_that_is_thrown_away(client: Client) -> None:
    await client.send(push(b"q", bytes(2 << 20))[: 1 << 20])


async def push_unanswered(client: Client) -> None:
    await client.send(push(b"q", *[b"x"] * 10))


async def pull_unanswered(client: Client) -> None:
    await client.send(pull(b"q", 2))


async def pull_read(client: Client) -> None:
    assert await client.pull(b"q") == b"1"


async def looking_for_a_queue(client: Client) -> None:
    await client.send(pull(b"never heard of"), push(b"nor of this", b"x"))


async def create_unanswered(client: Client) -> None:
    await client.send(create(b"new") + pull(b"new") + destroy(b"new"))


async def everything_at_once(client: Client) -> None:
    await client.send(
        pull(b"q"), push(b"q", b"x"), create(b"new"), pull(b"new", 9), destroy(b"new"), push(b"no", b"x")
    )


State = Callable[[Client], Awaitable[None]]
STATES: list[State] = [
    idle,
    inside_a_request,
    inside_a_message_that_is_thrown_away,
    push_unanswered,
    pull_unanswered,
    pull_read,
    looking_for_a_queue,
    create_unanswered,
    everything_at_once,
]
every_state = pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)


@pytest.fixture
async def client(edge: LiveClients) -> Client:
    """Return a client of an edge with three messages in q."""
    client = await edge.client()
    await client.create(b"q")
    await client.push(b"q", b"1", b"2", b"3")
    return client


@every_state
async def test_reset_is_handled(edge: LiveClients, client: Client, state: State) -> None:
    """Check that after a reset in any state each message is settled or back in its place."""
    await state(client)
    client.reset()
    await until(lambda: not edge.connections())
    await until(lambda: nothing_leased(edge))
    witness = await edge.client()
    found = await witness.drain(b"q")
    assert found[: len(found) - found.count(b"x")] in ([b"1", b"2", b"3"], [b"2", b"3"])
    edge.check_no_fault_of_ours()


async def nothing_leased(edge: LiveClients) -> bool:
    return bool((await edge.stats("q"))["in_flight"] == 0)


@pytest.mark.parametrize("state", [pull_read, everything_at_once])
async def test_closed_session_leaves_no_reference_cycles(
    edge: LiveClients, client: Client, state: State
) -> None:
    """Check that closed sessions are freed at once.

    Thousands of connections come and go; reference cycles would keep their memory until a garbage collection.
    """
    await state(client)
    gc.collect()
    gc.disable()
    try:
        client.reset()
        await until(lambda: not edge.connections())
        await until(lambda: not any(isinstance(each, ClientSession) for each in gc.get_objects()))
    finally:
        gc.enable()


async def test_the_edge_closes_with_requests_under_way(edge: LiveClients, client: Client) -> None:
    """Check that background tasks without a waiting client end with the edge (checked by the fixture)."""
    await everything_at_once(client)
    await client.send(pull(b"elsewhere") * 20)
