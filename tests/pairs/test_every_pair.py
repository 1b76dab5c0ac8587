"""Test that each protocol delivers messages of each other one (docs/conversions.md), with all edges on one store.

Text shows a message as a line and escapes octets that a line cannot contain. Queues that RQP fills are not transmission
queues (rqp_mca.md 2.4): a program moves messages from RQP to RQP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.store import QueueSpec
from tests.live import set_up
from tests.pairs.world import (
    MTYPE,
    World,
    arrived,
    bridged,
    msgrcv,
    msgsnd,
    put_by_cast,
    put_by_mca,
    put_by_ring,
    put_by_text,
    put_by_tmq,
    tag_in,
    tag_out,
    take_by_ring,
    take_by_rqp,
    take_by_tmq,
    world,
)
from tests.servers import Server
from tests.sysv.local import Keys

PUT = {"tmq": put_by_tmq, "ring": put_by_ring, "text": put_by_text, "mca": put_by_mca, "cast": put_by_cast}
TAKE = {"tmq": take_by_tmq, "ring": take_by_ring, "mca": take_by_rqp, "cast": take_by_rqp}
PROTOCOLS = ("tmq", "ring", "text", "mca", "cast", "sysv")
RQP = ("mca", "cast")
IN, OUT = b"1", b"2"  # names of subscriptions

LINES = [b"21.5", bytes(range(32, 127)), b"last"]  # legal messages of the text service (pubsub.md 5.3)
OCTETS = [b"21.5", bytes(range(256)), b"x" * 8000, b"two\r\nlines\\", b"last"]
SHOWN = {b"two\r\nlines\\": rb"two\r\nlines\\"}  # as the table of the page has it

_numbers = iter(range(100, 10_000, 10))  # no other queue has


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(running: Server) -> AsyncIterator[World]:
    """Run one world for all pairs, each of which has its own queues, tags and numbers."""
    running.clear()
    await set_up(running)
    async with world(running) as made:
        yield made


def binding(producer: str, consumer: str, name: str, number: int) -> dict[str, Any]:
    """By what the queue is filled, and where it appears."""
    text: dict[str, Any] = {}
    if producer == "text":
        text["subscribe"] = [tag_in(name).decode()]
    if consumer == "text":
        text["publish"] = tag_out(name).decode()
    return {"text": text, **({} if producer not in RQP else numbered(producer, number))}


def numbered(protocol: str, number: int) -> dict[str, Any]:
    return {"rqpMca": {"queueId": number}} if protocol == "mca" else {"rqpCast": {"key": number}}


def leading(protocol: str, number: int) -> dict[str, Any]:
    number_name = "queueId" if protocol == "mca" else "key"
    return {"protocol": f"rqp-{protocol}", number_name: number}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("consumer", PROTOCOLS)
@pytest.mark.parametrize("producer", PROTOCOLS)
async def test_a_body_comes_out_as_it_was_put_in(
    place: World, keys: Keys, tmp_path: Path, producer: str, consumer: str
) -> None:
    name, number = f"{producer}-to-{consumer}", next(_numbers)
    bindings = binding(producer, consumer, name, number)
    source = name
    if consumer in RQP:
        await place.declare(arrived(name), bindings=numbered(consumer, number + 1))
        if producer in RQP:
            source = f"{name}-received"
            await place.declare(source, bindings=bindings)
            bindings = {}
        await place.declare(name, remote=leading(consumer, number + 1), bindings=bindings)
    else:
        await place.declare(name, bindings=bindings)

    out, into = (keys.new() if each == "sysv" else 0 for each in (producer, consumer))
    bodies = LINES if producer == "text" else OCTETS
    if consumer == "text":
        bodies = [body for body in bodies if producer == "text" or body in (*LINES, *SHOWN)]
        subscriber = await place.text.client()
        await subscriber.subscribe(OUT, tag_out(name))
        await subscriber.subscribe(IN, tag_in(name))

    async with bridged(place, tmp_path, name, out, into):
        if producer == "sysv":
            msgsnd(out, bodies)
        else:
            await PUT[producer](place, source, number, bodies)
        if source != name:
            await place.pass_on(source, name, len(bodies))
        if consumer == "sysv":
            received = await msgrcv(into, len(bodies))
            found = [body for body, _ in received]
            assert {mtype for _, mtype in received} == {MTYPE if producer == "sysv" else 1}
        elif consumer == "text":
            way = IN if producer == "text" else OUT
            lines = await subscriber.lines(len(bodies))
            found = [line.removeprefix(b"MESSAGE %b " % way).removesuffix(b"\n") for line in lines]
            await subscriber.nothing_more()
            bodies = [SHOWN.get(body, body) for body in bodies]
        else:
            found = await TAKE[consumer](place, name, len(bodies))
    assert found == bodies


@pytest.mark.parametrize("consumer", RQP)
@pytest.mark.parametrize("producer", RQP)
def test_receiving_queue_is_not_forwarded(producer: str, consumer: str) -> None:
    """Check that each protocol reads them (rqp_mca.md 2.4)."""
    with pytest.raises(ValueError, match="two systems could forward a message to each other for ever"):
        QueueSpec.model_validate({"bindings": numbered(producer, 7), "remote": leading(consumer, 8)})
