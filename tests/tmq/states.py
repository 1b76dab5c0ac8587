"""Bring a connection into each state in which it may end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from protos import tmq
from tests.live import until
from tests.tmq.client import Client
from tests.tmq.live import LiveEdge

Q, OTHER = tmq.mqid_of(b"q"), tmq.mqid_of(b"other")
THREE = [b"1", b"2", b"3"]


async def idle(client: Client) -> None:
    """Send no request."""


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


State = Callable[[Client], Awaitable[None]]
STATES: list[State] = [
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
# Here timing decides whether a request was answered, and so settled the message before it.
RACES = [dnq_unanswered, everything_at_once]


def by_name(state: object) -> str:
    return str(getattr(state, "__name__", state))


async def sees(client: Client, mqid: bytes, count: int) -> bool:
    return await client.select(mqid) == count


async def prepared(edge: LiveEdge) -> tuple[Client, Client]:
    """Return a client that will end and one that observes, with three messages in q."""
    client, witness = await edge.client(), await edge.client()
    await witness.queue(b"q")
    await witness.queue(b"other")
    await client.queue(b"q")
    await client.queue(b"other")
    await client.put(Q, *THREE)
    return client, witness


async def nothing_leased(edge: LiveEdge) -> bool:
    return bool((await edge.stats("q"))["in_flight"] == 0)
