"""Neighbours with very many intervals of numbers (pubsub.md 4.3-4.5, 4.7, decision 9)."""

from __future__ import annotations

import asyncio

import pytest

from protos.pubsub import MAX_INTERVALS
from services.store.log.replica import Replica
from tests.live import until
from tests.pubsub.client import Client
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import (
    Neighbour,
    NewServer,
    has_all,
    store,
)

SCATTERED = 1000  # the limit of intervals per origin
PROMPT_S = 2.0  # the most time that a lightly loaded store needs on a slow machine
LIST_ITEM = 1500  # intervals of 33 octets that go into one line of a list


async def ended(neighbour: Neighbour, edge: LiveEdge) -> None:
    """Check that its link was closed for the intervals, and the store serves others."""
    await until(lambda: edge.refusals() == {"numbers_scattered": 1})
    await neighbour.closed()
    async with asyncio.timeout(PROMPT_S):
        await (await edge.client()).publish(b"t", b"still there")
        honest = await Neighbour.meet(edge, b"honest")
    await honest.entry(1, b"t", b"taken")
    await has_all(edge, [b"still there", b"taken"])


@pytest.mark.parametrize("line", [b"ENTRY other inc1 %d t m", b"GAP other inc1 %d %d"])
async def test_too_many_intervals_end_the_link(new_server: NewServer, start: Start, line: bytes) -> None:
    """Check that too many intervals end the link, as each store operation would take longer (4.4, decision 9)."""
    edge = await start(await store(new_server))
    neighbour = await Neighbour.meet(edge)
    odd = range(1, 40_000, 2)
    await neighbour.say(*[line % ((number,) * line.count(b"%d")) for number in odd])
    await ended(neighbour, edge)
    pieces = (await edge_pieces(edge))[b"other", b"inc1"]
    assert pieces == SCATTERED


async def edge_pieces(edge: LiveEdge) -> dict[tuple[bytes, bytes], int]:
    """Return the number of intervals of each origin, held or trimmed."""
    state = await Replica(edge.service.log).state()
    return {
        origin: len(numbers.spans) for known in (state.gone, state.held) for origin, numbers in known.items()
    }


async def test_many_origins_do_not_prevent_greetings(new_server: NewServer, start: Start) -> None:
    """Check that many origins do not prevent greetings (4.5).

    Each origin is within bounds, and together they exceed one list.
    """
    server = await store(new_server)
    edge = await start(server)
    odd = b"+".join([b"%d-%d" % (number, number) for number in range(1, 2 * SCATTERED, 2)])
    origins = [word for i in range(MAX_INTERVALS // SCATTERED + 1) for word in (b"x%d inc1" % i, odd)]
    await asyncio.to_thread(server.call, "HSET", edge.service.log.keys.log[2], *origins)
    client = await edge.client("link")
    await client.send(b"HAVE 1 honest inc1 -\n")
    for verb in (b"HAVE", b"FOLLOW"):
        said = await whole_list(client, verb)
        assert MAX_INTERVALS - SCATTERED < said.count(b"+") + said.count(b"/") <= MAX_INTERVALS
    honest = Neighbour(client, b"honest")
    await honest.entry(1, b"t", b"taken")
    await has_all(edge, [b"taken"])


async def whole_list(client: Client, verb: bytes) -> bytes:
    """Return all lines of the list (4.5)."""
    said = b""
    while not said or said.endswith(b",\n"):
        line = await client.line()
        assert line.startswith((verb, b"BEAT")), line[:80]
        said += line if line.startswith(verb) else b""
    return said


async def test_too_long_greeting_ends_the_link(new_server: NewServer, start: Start) -> None:
    """Check that a too long greeting ends the link: a baseline is stored permanently, so its limit is 1 MiB.

    (4.3, decision 9)
    """
    edge = await start(await store(new_server))
    client = await edge.client("link")
    first, lines = 9 * 10**15, []
    for at in range(30):
        numbers = range(first + 2 * at * LIST_ITEM, first + 2 * (at + 1) * LIST_ITEM, 2)
        lines.append(b"HAVE 1 other inc1 x/i:" + b"+".join([b"%d-%d" % (n, n) for n in numbers]))
    neighbour = Neighbour(client, b"other")
    await neighbour.say(b",\n".join(lines))
    await ended(neighbour, edge)
    assert await Replica(edge.service.log).neighbours() == [b"honest"]
