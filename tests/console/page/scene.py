"""Provide a scene for the page: a store, edges of several protocols, a ring of three nodes, traffic, dead letters."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from services.store import Queue, QueueSpec, Store
from services.store.model import records as record
from services.store.model.keys import RegistryKeys
from services.store.model.peer import PeerSpec
from services.store.pipeline.async_client import AsyncClient
from tests.console.local import HEADERS, keep
from tests.console.page.traffic import PACE_S, Traffic
from tests.live import set_up, until
from tests.program import EdgeProgram
from tests.ring.links.live import QUICK, free_udp_port
from tests.servers import PROGRAMS, Server, free_port

GROUP = 7
DEAD = 60  # in the queue `returns`
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
OPEN = {"orders", "orders/eu"}  # queues that clients of the traffic have open
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
    """A console, always on the same port, so that an open page reconnects."""

    edge = "console"
    listeners = ()

    def __init__(self, url: str, directory: Path, port: int, *settings: str) -> None:
        super().__init__(url, directory)
        data = f"store.data_dir={keep(directory / 'data')}"
        values = ("health.port=0", f"console.port={port}", data, *settings)
        self._command = [*self._command[:3], *(word for each in values for word in ("--set", each))]
        self.port = port
        self.address = f"http://127.0.0.1:{port}/"


@dataclass
class Scene:
    server: Server
    folder: Path
    console: Console
    edges: list[EdgeProgram]
    store: Store
    kept: set[str] = field(default_factory=set)  # names of queues that a reset leaves alone

    @property
    def address(self) -> str:
        return self.console.address

    async def restart(self) -> None:
        """Start another process on the same port."""
        self.console = Console(self.server.url, self.folder, self.console.port)
        await self.console.__aenter__()

    async def end_console(self) -> None:
        await self.console.__aexit__(None, None, None)

    async def declare(self, name: str, **spec: object) -> Queue:
        """Create or change a queue."""
        queue, _ = await self.store.catalogue.declare(
            name, QueueSpec.model_validate(spec), "test", replace=True
        )
        return queue

    async def publish(self, name: str, *bodies: bytes) -> AsyncClient:
        """Publish messages, and return the client that did."""
        return await _published(self.store, name, *bodies)

    async def stats(self, name: str) -> dict[str, int]:
        return await self.store.listing.stats(await self.store.catalogue.find(name))

    async def are_dead(self, name: str, number: int) -> None:
        """Wait until the queue has this many dead letters."""

        async def are_dead() -> bool:
            return (await self.stats(name))["dead_letters"] == number

        await until(are_dead)

    @asynccontextmanager
    async def guarded(self) -> AsyncIterator[Console]:
        """Run a second console on this store, which requires one of `TOKENS`."""
        tokens = f"console.tokens={json.dumps(_tokens())}"
        async with Console(self.server.url, self.folder, free_port(), tokens) as console:
            yield console

    async def reset(self) -> None:
        """Bring queues, peers, dead letters, jobs, the report and the audit log back to the state of a new scene.

        Messages in `OPEN` queues stay, as clients have these open. Jobs that ended stay in the list.
        """
        await self._cancel_jobs()
        for queue in [each async for each in self.store.listing.queues()]:
            if queue.name not in self.kept:
                await self.store.catalogue.delete(queue)
        for peer in await self.store.peers.all():
            await self.store.peers.delete(peer.name)
        keys = RegistryKeys()
        self.server.call("DEL", keys.audit, keys.audit_minor, keys.report)
        await declare(self.store)
        await _let_die(self.store)

    async def _cancel_jobs(self) -> None:
        async with aiohttp.ClientSession(f"{self.address}api/v1/", headers=HEADERS) as session:
            async with session.get("jobs?limit=1000") as answer:
                jobs = (await answer.json())["items"]
            for job in jobs:
                if job["state"] == "running":
                    async with session.delete(f"jobs/{job['id']}") as answer:
                        assert answer.status == 200


@asynccontextmanager
async def scene(folder: Path, *, pace_s: float = PACE_S) -> AsyncIterator[Scene]:
    """Start a scene with traffic and dead letters; `pace_s` is the interval of the traffic."""
    server = Server(next(iter(PROGRAMS)), folder / "store").start()
    store = Store(server.url, "test")
    try:
        await set_up(server)
        await declare(store)
        async with AsyncExitStack() as stack:
            edges = await _started(stack, server.url, folder)
            console = Console(server.url, folder, free_port())
            await console.__aenter__()
            made = Scene(server, folder, console, edges, store)
            try:
                traffic = Traffic(edges[0].place("document"), edges[1].place("text"), pace_s)
                await stack.enter_async_context(traffic)
                await _let_die(store)
                made.kept = {each.name async for each in store.listing.queues()} - (QUEUES.keys() - OPEN)
                yield made
            finally:
                await made.end_console()
    finally:
        await store.close()
        server.end()


async def _started(stack: AsyncExitStack, url: str, folder: Path) -> list[EdgeProgram]:
    beacons = free_udp_port()
    nodes = [ring_node(url, folder, name, beacons) for name in ("north", "east", "south")]
    programs = [Tmq(url, folder), Text(url, folder), *nodes]
    return list(await asyncio.gather(*map(stack.enter_async_context, programs)))


def ring_node(url: str, folder: Path, name: str, beacons: int) -> Ring:
    settings = ring_settings(name, beacons)
    return Ring(url, folder, *(f"node.{each}={value}" for each, value in settings.items()))


def ring_settings(name: str, beacons: int) -> dict[str, object]:
    """Return the settings of a ring node; all nodes find each other by the port `beacons`."""
    times = {f"times.{each}": seconds for each, seconds in QUICK.items()}
    return {"group": GROUP, "name": f"127.0.0.1:{name}", "beacon_port": beacons, **times}


def _tokens() -> list[dict[str, str]]:
    return [
        {"name": f"{role} person", "role": role, "sha256": hashlib.sha256(token.encode()).hexdigest()}
        for role, token in TOKENS.items()
    ]


async def declare(store: Store) -> None:
    for name, spec in QUEUES.items():
        await store.catalogue.declare(name, spec, "test", replace=True)
    spec = {"protocol": "rqp-mca", "addresses": ["10.0.0.7", "mq.example.org:11311"]}
    await store.peers.apply("warehouse", PeerSpec.model_validate(spec), "test")


async def _let_die(store: Store) -> None:
    """Publish more than `returns` holds, so that its oldest messages become dead letters."""
    bodies = [SCRIPT, LONG_NUMBER, bytes(range(64)), *(b'{"return": %d}' % i for i in range(DEAD + 2))]
    await _published(store, "returns", *bodies, attributes={"kind": "return"})

    async def are_dead() -> bool:
        return (await store.listing.stats(await store.catalogue.find("returns")))["dead_letters"] >= DEAD

    await until(are_dead)


async def _published(store: Store, name: str, *bodies: bytes, attributes: Any = None) -> AsyncClient:
    queue = await store.catalogue.find(name)
    pipe = store.open_domain(queue.domain).pipe
    await pipe.ready()
    client = AsyncClient(pipe)
    await client.publish(queue, [record.encode(body, attributes) for body in bodies], "test")
    return client
