"""Invalid input of a neighbour: the link is closed, the reason counted, and nothing of it is stored (4.5, 4.7)."""

from __future__ import annotations

import asyncio

import pytest

from tests.live import until
from tests.pubsub.conftest import Start
from tests.pubsub.live import QUICK_LINKS, SOON_SILENT, LiveEdge
from tests.pubsub.stores import Neighbour, NewServer, held, linked, messages, send_all, store, unlinked
from tests.servers import Server

HAVE = b"HAVE 1 other inc1 -\n"
ENTRY = b"ENTRY other inc1 1 t m\n"
BAD = {  # input after both greetings, and the reason to refuse it
    "unknown_verb": b"HELLO there\n",
    "bad_line": b"ENTRY other inc1 01 t m\n",
    "bad_held": b"FOLLOW 1 other inc1 other/inc1:5-1\n",
    "unfinished_list": b"FOLLOW 1 other inc1 other/inc1:1-5,\nBEAT\n",
    "bad_version": b"FOLLOW 2 other inc1 -\n",
    "line_too_long": b"BEAT " + b"1" * (64 << 10) + b"-1\n",
    "greeted_twice": HAVE,
    "follow_out_of_turn": b"FOLLOW 1 other inc1 -\n" * 2,
}
BEFORE = {  # input without a greeting
    "bad_version": b"HAVE 2 other inc1 -\n",
    "not_asked_for": ENTRY,
    "follow_out_of_turn": b"FOLLOW 1 other inc1 -\n",
    "unknown_verb": b"SUBSCRIBE 1 t\n",  # a client at the wrong port
}


async def refused(edge: LiveEdge, reason: str) -> None:
    await until(lambda: edge.refusals()[reason] == 1)
    await until(lambda: not edge.connections("link"))
    assert edge.refusals() == {reason: 1}
    await unlinked(edge)


@pytest.mark.parametrize("reason", BAD)
async def test_a_line_that_breaks_the_grammar_ends_the_link(edge: LiveEdge, reason: str) -> None:
    """Check that a line that breaks the grammar ends the link after earlier lines were carried out (4.7)."""
    neighbour = await Neighbour.meet(edge)
    await neighbour.client.send(ENTRY + BAD[reason] + b"ENTRY other inc1 2 t behind it\n")
    await neighbour.closed()
    await refused(edge, reason)
    await (await edge.client()).publish(b"t", b"from a client")
    assert await messages(edge) in ([b"from a client"], [b"m", b"from a client"])


@pytest.mark.parametrize("reason", BEFORE)
async def test_entries_without_a_request_are_refused(edge: LiveEdge, reason: str) -> None:
    """Check that entries without a request are refused: HAVE is first, and entries follow FOLLOW (4.5)."""
    client = await edge.client("link")
    await client.send(BEFORE[reason])
    await Neighbour(client, b"other").closed()
    await refused(edge, reason)
    assert await held(edge) == {}


async def test_entries_before_follow_are_refused(edge: LiveEdge) -> None:
    """Check that entries before FOLLOW are refused (4.3).

    The edge had no time to request them, or follows this neighbour on another link.
    """
    client = await edge.client("link")
    await client.send(HAVE + ENTRY)
    await Neighbour(client, b"other").closed()
    await refused(edge, "not_asked_for")
    await Neighbour.meet(edge)
    second = await edge.client("link")
    await second.send(HAVE + b"BEAT 7-7\n" * 1000 + ENTRY)
    await Neighbour(second, b"other").closed()
    await until(lambda: edge.refusals()["not_asked_for"] == 2)
    assert await held(edge) == {}
    assert edge.value("penstock_links_following") == 1


@pytest.mark.parametrize(
    "rest", [b"ENTRY other inc1 2 t half a li", b"FOLLOW 1 other inc1 other/inc1:1-5,\n"]
)
async def test_a_line_cut_short_is_counted(edge: LiveEdge, rest: bytes) -> None:
    """Check that a FIN inside a line or a list is counted (4.7)."""
    neighbour = await Neighbour.meet(edge)
    await neighbour.client.send(ENTRY + rest)
    neighbour.client.half_close()
    await neighbour.closed()
    await refused(edge, "truncated")


async def test_fin_between_lines_is_no_error(edge: LiveEdge) -> None:
    """Check that a FIN between lines is no error (4.7)."""
    neighbour = await Neighbour.meet(edge)
    neighbour.client.half_close()
    await neighbour.closed()
    await until(lambda: not edge.connections("link"))
    await unlinked(edge)
    assert edge.refusals() == {}


async def test_neighbours_error_is_logged_and_ends_the_link(edge: LiveEdge) -> None:
    """Check that a neighbour's ERROR is logged with its reason and ends the link (4.5)."""
    neighbour = await Neighbour.meet(edge)
    await neighbour.say(b"ERROR we have moved")
    await neighbour.closed()
    (event,) = edge.log.events("link_refused")
    assert event.getMessage() == "the neighbour closed the link: we have moved"


async def test_silent_neighbour_is_closed(new_server: NewServer, start: Start) -> None:
    """Check that a silent neighbour is closed after 2 s here, and one that only beats is not (4.7)."""
    edge = await start(await store(new_server), link=SOON_SILENT)
    quiet, beating = await Neighbour.meet(edge, b"quiet"), await Neighbour.meet(edge, b"beating")
    await linked(edge, 2)

    async def quiet_is_gone() -> bool:
        await beating.say(b"BEAT")
        return len(edge.connections("link")) == 1

    await until(quiet_is_gone)
    assert edge.refusals() == {"silent": 1}
    await beating.entry(1, b"t", b"still here")
    await until(lambda: edge.value("penstock_link_messages_total") == 1)
    await quiet.closed()


async def test_failing_neighbour_is_redialled_with_backoff(server: Server, start: Start) -> None:
    """Check that a failing neighbour is redialled with back-off, here up to 1 s (4.3, 4.7)."""
    comes: list[float] = []

    async def greet_badly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        comes.append(asyncio.get_running_loop().time())
        writer.write(HAVE + HAVE)
        await reader.read()
        writer.close()

    neighbour = await asyncio.start_server(greet_badly, "127.0.0.1", 0)
    async with neighbour:
        port = neighbour.sockets[0].getsockname()[1]
        edge = await start(server, neighbours=[f"127.0.0.1:{port}"], link=QUICK_LINKS | {"reconnect_s": 1.0})
        await until(lambda: len(comes) == 4)
        assert comes[-1] - comes[0] > 0.8 * (0.1 + 0.2 + 0.4)
        await until(lambda: edge.refusals()["greeted_twice"] == 4)


async def test_too_long_line_is_refused_unbuffered(server: Server, start: Start) -> None:
    """Check that a line longer than the largest entry plus 4 KiB is refused unbuffered (4.5, 4.7).

    Clients are served meanwhile.
    """
    edge = await start(server, link=QUICK_LINKS | {"max_line_bytes": 1 << 20})
    neighbour = await Neighbour.meet(edge)
    await neighbour.say(b"ENTRY other inc1 1 t " + b"x" * ((1 << 20) - 21))  # the longest allowed
    await until(lambda: edge.value("penstock_link_messages_total") == 1)
    await neighbour.client.send(b"ENTRY other inc1 2 t ")
    sent = 0
    client = await edge.client()
    while not edge.refusals():
        # octets of one read are handled before they are counted
        assert edge.budget.total <= (1 << 20) + (256 << 10)
        neighbour.client.writer.write(b"x" * (64 << 10))
        sent += 64 << 10
        await client.nothing_more()
    assert sent < 4 << 20
    await refused(edge, "line_too_long")
    assert edge.budget.total == 0


async def test_clients_are_served_during_a_neighbours_flood(server: Server, start: Start) -> None:
    """Check that clients are served during a neighbour's flood: excess input waits at the neighbour (4.3)."""
    edge = await start(server)
    neighbour = await Neighbour.meet(edge)
    client = await edge.client()
    await client.subscribe(b"1", b"mine")
    running = server
    running.stop()
    try:
        flood = b"".join(b"ENTRY other inc1 %d t %b\n" % (number, b"x" * 1000) for number in range(1, 10_001))
        neighbour.client.writer.write(flood)
        await until(lambda: edge.listeners["link"].traffic.received > 4 << 20)
        await asyncio.sleep(0.3)
        received = edge.listeners["link"].traffic.received
        assert received < 6 << 20, "4 MiB, and the octets of the same read"
        await client.nothing_more()
    finally:
        running.cont()
    await until(edge.is_ready)
    await send_all(await edge.client(), b"mine", [b"at once"])
    assert await client.line() == b"MESSAGE 1 at once\n"
    await until(lambda: edge.value("penstock_link_messages_total") == 10_000)
    assert edge.refusals() == {}
