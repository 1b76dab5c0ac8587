"""What one protocol puts in, another takes out: text, TMQ and the command line, each pair (docs/conversions.md)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from protos.tmq import mqid_of
from tests.live import until
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import linked, store
from tests.servers import Server
from tests.tmq.live import LiveEdge as TmqEdge

Command = Callable[..., Awaitable[bytes]]


@pytest.fixture
async def tmq(server: Server, edge: LiveEdge) -> AsyncIterator[TmqEdge]:
    """A TMQ edge on the text edge's store."""
    tmq = await TmqEdge(server.url).start()
    yield tmq
    await tmq.close()
    tmq.check_no_fault_of_ours()


@pytest.fixture
def penstock(server: Server) -> Command:
    """Runs a command on the same store; what it writes to standard output."""

    async def run(*arguments: str, stdin: bytes = b"") -> bytes:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "services.cli.main", *arguments),
            env={**os.environ, "REDIS_URL": server.url},
            stdin=-1,
            stdout=-1,
        )
        out, _ = await process.communicate(stdin)
        assert process.returncode == 0
        return out

    return run


def subscribing(*patterns: str) -> dict[str, Any]:
    return {"text": {"subscribe": patterns}}


def publishing(tag: str) -> dict[str, Any]:
    return {"text": {"publish": tag}}


async def test_a_send_is_taken_out_by_dnq(edge: LiveEdge, tmq: TmqEdge) -> None:
    """pubsub.md 5.1: the body is the message and nothing else; the order is that of the SENDs."""
    await edge.declare("orders", bindings=subscribing("order.*"))
    sender, taker = await edge.client(), await tmq.client()
    assert await taker.open(b"orders") == mqid_of(b"orders")
    await sender.send(b"SEND order.a one\r\nSEND other x\r\nSEND order.b \r\nSEND order.a  t\\n\x7f\r\n")
    assert await sender.lines(4) == [b"OK\r\n"] * 4
    assert await taker.drain(mqid_of(b"orders")) == [b"one", b"", b" t\\n\x7f"]


async def test_letters_of_a_utf8_listener_are_octets_of_the_body(edge: LiveEdge, tmq: TmqEdge) -> None:
    """pubsub.md 2.1"""
    await edge.declare("orders", bindings=subscribing("größe*"))
    sender, taker = await edge.client("utf8"), await tmq.client()
    await sender.publish("größe.1".encode(), "süß".encode())
    await taker.open(b"orders")
    assert await taker.dnq(mqid_of(b"orders")) == "süß".encode()


async def test_an_enq_appears_to_subscribers(edge: LiveEdge, tmq: TmqEdge) -> None:
    """pubsub.md 5.2, 5.3: as it is where it is a legal message, else escaped; and the queue has it all the same."""
    await edge.declare("readings", bindings=publishing("plant.readings"))
    plain, wide = await edge.client(), await edge.client("utf8")
    await plain.subscribe(b"1", b"plant.*")
    await wide.subscribe(b"2", b"plant.readings")
    putter = await tmq.client()
    bodies = [
        b"21.5",
        b"",
        b"C:\\x \x7f",
        b"two\r\nlines\\",
        b"\x00\x1f",
        "ü\\".encode(),
        b"\xff\\",
        "ü\n".encode(),
    ]
    mqid = await putter.open(b"readings")
    assert mqid is not None
    await putter.put(mqid, *bodies)
    shown = [
        *(rb"21.5", rb"", b"C:\\x \x7f", rb"two\r\nlines\\", rb"\x00\x1f"),
        *(rb"\xc3\xbc\\", rb"\xff\\", rb"\xc3\xbc\n"),
    ]  # fmt: skip
    assert await plain.lines(8) == [b"MESSAGE 1 %b\n" % text for text in shown]
    shown[5] = "ü\\".encode()  # legal there: no escapes, and its backslash is one
    assert await wide.lines(8) == [b"MESSAGE 2 %b\n" % text for text in shown]
    assert await putter.drain(mqid) == bodies


async def test_a_transaction_appears_when_it_ends(edge: LiveEdge, tmq: TmqEdge) -> None:
    """pubsub.md 5.2, tmq.md 5: an aborted one never does."""
    await edge.declare("readings", bindings=publishing("r"))
    subscriber, putter = await edge.client(), await tmq.client()
    await subscriber.subscribe(b"1", b"r")
    mqid = await putter.open(b"readings")
    assert mqid is not None
    for body, end in ((b"aborted", putter.ta), (b"committed", putter.te)):
        assert await putter.ts()
        assert await putter.enq(mqid, body)
        await subscriber.nothing_more()
        assert await end()
    assert await subscriber.line() == b"MESSAGE 1 committed\n"


async def test_there_and_back_is_not_a_circle(edge: LiveEdge, tmq: TmqEdge) -> None:
    """pubsub.md 5.2: a queue may do both, and what came over one bridge does not cross the other."""
    both = {"text": {"subscribe": ["in.*", "out"], "publish": "out"}}
    await edge.declare("both", bindings=both)
    subscriber, sender, client = await edge.client(), await edge.client(), await tmq.client()
    await subscriber.subscribe(b"1", b"out")
    mqid = await client.open(b"both")
    assert mqid is not None
    await sender.publish(b"in.a", b"from text")
    await client.put(mqid, b"from tmq")
    assert await subscriber.line() == b"MESSAGE 1 from tmq\n"
    await subscriber.nothing_more()
    assert await client.drain(mqid) == [b"from text", b"from tmq"]


async def test_a_send_is_got_on_the_command_line(edge: LiveEdge, penstock: Command) -> None:
    """The tag is an attribute there, and the origin says that it was text."""
    await edge.declare("orders", bindings=subscribing("order.*"))
    sender = await edge.client()
    await sender.publish(b"order.a", b"a pump")
    told = json.loads(await penstock("get", "orders", "--json"))
    assert (told["body"], told["encoding"], told["attributes"]) == ("a pump", "utf-8", {"tag": "order.a"})
    assert told["origin"] == "text 127.0.0.1"


async def test_a_put_of_the_command_line_appears_and_is_taken(
    edge: LiveEdge, tmq: TmqEdge, penstock: Command
) -> None:
    """Attributes stay in the queue: neither protocol has a place for them."""
    await edge.declare("readings", bindings=publishing("r"))
    subscriber, taker = await edge.client(), await tmq.client()
    await subscriber.subscribe(b"1", b"r")
    await penstock("put", "readings", "--lines", "--attr", "source=import", stdin=b"one\n\ttwo\n")
    assert await subscriber.lines(2) == [b"MESSAGE 1 one\n", b"MESSAGE 1 \\x09two\n"]
    await taker.open(b"readings")
    assert await taker.drain(mqid_of(b"readings")) == [b"one", b"\ttwo"]


async def test_a_redriven_message_does_not_appear_again(edge: LiveEdge, penstock: Command) -> None:
    """docs/conversions.md: it has been shown when it was put in."""
    queue = await edge.declare("readings", messageTTL="1ms", bindings=publishing("r"))
    subscriber = await edge.client()
    await subscriber.subscribe(b"1", b"r")
    await penstock("put", "readings", "late")
    assert await subscriber.line() == b"MESSAGE 1 late\n"

    async def is_dead() -> bool:
        await edge.tools.look_at(queue.domain).tidy(queue)
        return bool((await edge.tools.listing.stats(queue))["dead_letters"] == 1)

    await until(is_dead)
    await penstock("dead", "redrive", "readings", "--all")
    assert (await edge.tools.listing.stats(queue))["redriven"] == 1
    await subscriber.nothing_more()


async def test_over_a_link_the_copy_says_where_it_came_from(
    server: Server, tmq: TmqEdge, start: Start, new_server: Callable[[], Server]
) -> None:
    """pubsub.md 4.3, 5.1: a queue at another store gets it too; its origin is the store where it was sent."""
    here = await start(server)
    there = await start(await store(new_server), neighbours=[here.link_address])
    queue = await here.declare("orders", bindings=subscribing("order.*"))
    await linked(here)
    sender, taker = await there.client(), await tmq.client()
    await sender.publish(b"order.a", b"from afar")
    mqid = await taker.open(b"orders")
    assert mqid is not None
    (delivery,) = await until(lambda: here.tools.look_at(queue.domain).peek(queue, 1))
    assert delivery.origin == f"text {(await there.tools.registry.epoch()).partition('.')[0]}"
    assert await taker.dnq(mqid) == b"from afar"
