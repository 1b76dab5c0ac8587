"""Messages of a text client at the command line and a TMQ client (docs/conversions.md)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.live import until
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import linked, store
from tests.pubsub.test_bridges import subscribing
from tests.servers import Server
from tests.tmq.live import LiveEdge as TmqEdge

Command = Callable[..., Awaitable[bytes]]


@pytest.fixture
async def tmq(server: Server, edge: LiveEdge) -> AsyncIterator[TmqEdge]:
    """Start a TMQ edge on the text edge's store."""
    tmq = await TmqEdge(server.url).start()
    yield tmq
    await tmq.close()
    tmq.check_no_fault_of_ours()


@pytest.fixture
def penstock(server: Server) -> Command:
    """Run a command on the same store; return what it writes to standard output."""

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


async def test_send_can_be_taken_by_the_command_line(edge: LiveEdge, penstock: Command) -> None:
    """Check that the command line gets a SEND, with the tag as an attribute and the text service as origin."""
    await edge.declare("orders", **subscribing("order.*"))
    sender = await edge.client()
    await sender.publish(b"order.a", b"a pump")
    message = json.loads(await penstock("get", "orders", "--json"))
    assert (message["body"], message["encoding"], message["attributes"]) == (
        "a pump",
        "utf-8",
        {"tag": "order.a"},
    )
    assert message["origin"] == "text 127.0.0.1"


async def test_copy_over_a_link_has_its_store_of_origin(
    server: Server, tmq: TmqEdge, start: Start, new_server: Callable[[], Server]
) -> None:
    """Check that a copy over a link has its store of origin (pubsub.md 4.3, 5.1)."""
    here = await start(server)
    there = await start(await store(new_server), neighbours=[here.link_address])
    queue = await here.declare("orders", **subscribing("order.*"))
    await linked(here)
    sender, taker = await there.client(), await tmq.client()
    await sender.publish(b"order.a", b"from afar")
    mqid = await taker.open(b"orders")
    assert mqid is not None
    (delivery,) = await until(lambda: here.tools.get_domain(queue.domain).peek(queue, 1))
    assert delivery.origin == f"text {(await there.tools.registry.epoch()).partition('.')[0]}"
    assert await taker.dnq(mqid) == b"from afar"
