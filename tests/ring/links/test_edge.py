"""The real edge, `python -m services.ring`: nodes in a ring, each with its own store (ring.md 5.5)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from services.store import QueueSpec, Store
from services.store.pipeline.async_client import AsyncClient
from tests.live import until
from tests.ring.links.conftest import NewServer
from tests.ring.links.live import GROUP
from tests.ring.links.program import NodeProgram, is_led_ring
from tests.servers import Server

Spawn = Callable[..., NodeProgram]


@pytest.fixture
async def spawn(port: int, tmp_path: Path) -> AsyncIterator[Spawn]:
    programs: list[NodeProgram] = []

    def make(server: Server, *settings: str) -> NodeProgram:
        programs.append(NodeProgram(server.url, tmp_path, port, *settings, module="services.ring"))
        return programs[-1]

    yield make
    for program in programs:
        program.end()


async def led_ring(programs: list[NodeProgram]) -> None:
    for program in programs:
        await until(program.has_started)
    await until(lambda: is_led_ring(programs))


async def queue(store: Store, name: str, **binding: int) -> Any:
    spec = QueueSpec.model_validate({"bindings": {"ring": binding}})
    found, _ = await store.catalogue.declare(name, spec, "test")
    return found


async def bodies(store: Store, found: Any) -> list[bytes]:
    return [
        record[4:]
        for delivery in await store.get_domain(found.domain).peek(found, 1000)
        for record in delivery.records()
    ]


async def test_outbox_messages_reach_the_inboxes_of_other_stores(spawn: Spawn, new_server: NewServer) -> None:
    """Check that outbox messages pass three processes with a store each, also after one was killed (5.5)."""
    servers = [await new_server() for _ in range(3)]
    stores = [Store(server.url, "test") for server in servers]
    try:
        outbox = await queue(stores[0], "out", outbox=GROUP)
        inboxes = [await queue(store, "in", inbox=GROUP) for store in stores[1:]]
        programs = [spawn(server, "node.window=16", "node.forward_user=true") for server in servers]
        await led_ring(programs)
        client = AsyncClient(stores[0].open_domain(outbox.domain).pipe)
        sent = [b"%d" % n for n in range(50)]

        async def put(some: list[bytes]) -> None:
            records = [len(body).to_bytes(4, "big") + body for body in some]
            assert await client.publish(outbox, records, "test") == []

        async def has(store: Store, found: Any, wanted: list[bytes]) -> bool:
            return set(await bodies(store, found)) >= set(wanted)

        await put(sent[:25])
        for store, found in zip(stores[1:], inboxes, strict=True):
            await until(partial(has, store, found, sent[:25]))
        programs[1].kill9()
        await put(sent[25:])
        programs[1] = spawn(servers[1], "node.window=16", "node.forward_user=true")
        await led_ring(programs)
        await until(partial(has, stores[2], inboxes[1], sent))  # one node missed some of them
        assert programs[0].stop() == 0, programs[0].text()
        assert not [each for each in programs if "Traceback" in each.text()]
    finally:
        for store in stores:
            await store.close()


async def test_client_port_works_without_a_node(spawn: Spawn, new_server: NewServer) -> None:
    """Check that `ring: off` starts the client port without a node's listener and status."""
    server = await new_server()
    program = spawn(server, "listeners.ring=off")
    await until(lambda: program.events("started"))
    assert not program.events("beacons_listening")
    assert not program.events("listening")
    assert program.stop() == 0
