"""A place that the page can show: a store, edges of all protocols, a ring of three nodes, traffic, dead letters."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from services.store import QueueSpec, Store
from services.store.model import records as record
from services.store.model.peer import PeerSpec
from services.store.pipeline.async_client import Asker
from tests.console.local import keep
from tests.console.page.traffic import Traffic
from tests.live import set_up, until
from tests.program import EdgeProgram
from tests.ring.links.live import QUICK, free_udp_port
from tests.servers import PROGRAMS, Server, free_port

GROUP = 7
DEAD = 60  # letters of the queue `returns`
SCRIPT = b'<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'
LONG_NUMBER = b'{"order": 12345678901234567890, "lines": [{"sku": "A-1", "n": 2}], "note": "caf\xc3\xa9"}'
QUEUES = {
    "orders": QueueSpec.model_validate({"messageTTL": "24h"}),
    "orders/eu": QueueSpec(max_length=50_000),
    "invoices": QueueSpec(),
    "returns": QueueSpec.model_validate({"maxLength": 5, "overflow": "dead_letter_oldest"}),
    "sensors": QueueSpec.model_validate({"bindings": {"text": {"subscribe": ["plant.*"]}}}),
    "archive": QueueSpec(paused=True),
}
TOKENS = {"view": "look-only", "operate": "may-operate", "admin": "may-everything"}


class Tmq(EdgeProgram):
    edge = "tmq"
    listeners = ("listeners.document.port=0", "listeners.reference=off")


class Text(EdgeProgram):
    edge = "pubsub"
    listeners = ("listeners.text.port=0", "listeners.link.port=0")


class Ring(EdgeProgram):
    edge = "ring"
    listeners = ("listeners.clients.port=0", "listeners.ring.port=0")


class Console(EdgeProgram):
    """Not below `edges.`, and always on the same port: a page that is open finds it again."""

    edge = "console"
    listeners = ()

    def __init__(self, url: str, directory: Path, port: int, *settings: str) -> None:
        super().__init__(url, directory)
        data = f"store.data_dir={keep(directory / 'data')}"
        said = ("health.port=0", f"console.port={port}", data, *settings)
        self._command = [*self._command[:3], *(word for each in said for word in ("--set", each))]
        self.port = port
        self.address = f"http://127.0.0.1:{port}/"


@dataclass
class Scene:
    server: Server
    folder: Path
    console: Console
    edges: list[EdgeProgram]
    store: Store
    traffic: Traffic
    settings: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        return self.console.address

    async def restart(self) -> None:
        """Another process on the same port."""
        self.console = Console(self.server.url, self.folder, self.console.port, *self.settings)
        await self.console.__aenter__()

    async def end_console(self) -> None:
        await self.console.__aexit__(None, None, None)


@asynccontextmanager
async def scene(folder: Path, *, tokens: bool = False, ring: bool = True) -> AsyncIterator[Scene]:
    """Returns once everything runs, traffic flows and something died."""
    server = Server(next(iter(PROGRAMS)), folder / "store").start()
    store = Store(server.url, "test")
    try:
        await set_up(server)
        await declare(store)
        async with AsyncExitStack() as stack:
            edges = await _started(stack, server.url, folder, ring)
            settings = (f"console.tokens={json.dumps(_tokens())}",) if tokens else ()
            console = Console(server.url, folder, free_port(), *settings)
            await console.__aenter__()
            traffic = await stack.enter_async_context(
                Traffic(edges[0].place("document"), edges[1].place("text"))
            )
            made = Scene(server, folder, console, edges, store, traffic, settings)
            try:
                await _let_die(store)
                yield made
            finally:
                await made.end_console()
    finally:
        await store.close()
        server.end()


async def _started(stack: AsyncExitStack, url: str, folder: Path, ring: bool) -> list[EdgeProgram]:
    beacons = free_udp_port()
    nodes = [ring_node(url, folder, name, beacons) for name in ("north", "east", "south") if ring]
    programs = [Tmq(url, folder), Text(url, folder), *nodes]
    return list(await asyncio.gather(*map(stack.enter_async_context, programs)))


def ring_node(url: str, folder: Path, name: str, beacons: int) -> Ring:
    told = ring_settings(name, beacons)
    return Ring(url, folder, *(f"node.{each}={value}" for each, value in told.items()))


def ring_settings(name: str, beacons: int) -> dict[str, object]:
    """Of one of the ring's nodes, which all find each other by this port."""
    times = {f"times.{each}": seconds for each, seconds in QUICK.items()}
    return {"group": GROUP, "name": f"127.0.0.1:{name}", "beacon_port": beacons, **times}


def _tokens() -> list[dict[str, str]]:
    return [
        {"name": f"{role} person", "role": role, "sha256": hashlib.sha256(token.encode()).hexdigest()}
        for role, token in TOKENS.items()
    ]


async def declare(store: Store) -> None:
    for name, spec in QUEUES.items():
        await store.catalogue.declare(name, spec, "test")
    spec = {"protocol": "rqp-mca", "addresses": ["10.0.0.7", "mq.example.org:11311"]}
    await store.peers.apply("warehouse", PeerSpec.model_validate(spec), "test")


async def _let_die(store: Store) -> None:
    """More than `returns` holds: its oldest messages are dead."""
    queue = await store.catalogue.find("returns")
    pipe = store.domain(queue.domain).pipe
    await pipe.ready()
    bodies = [SCRIPT, LONG_NUMBER, bytes(range(64)), *(b'{"return": %d}' % i for i in range(DEAD + 2))]
    records = [record.encode(body, {"kind": "return"}) for body in bodies]
    await Asker(pipe).publish(queue, records, "test")
    await until(lambda: _are_dead(store))


async def _are_dead(store: Store) -> bool:
    return bool((await store.listing.stats(await store.catalogue.find("returns")))["dead_letters"] >= DEAD)
