"""One store with an edge of each protocol, and clients of each that put and take messages.

RQP has two edges: `far` receives, by numbers and keys, and `near` sends over RQP/cast.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protos.rqp_cast import Result
from services.store import Queue
from tests.live import Live, until
from tests.pubsub.live import LiveEdge as TextEdge
from tests.ring.clients.live import LiveClients
from tests.rqp.cast.hands import HandSender
from tests.rqp.cast.net import HERE, THERE, Net
from tests.rqp.live import LiveEdge as RqpEdge
from tests.rqp.mca.peer import registered
from tests.servers import Server
from tests.sysv.live import LiveBridge
from tests.sysv.local import existing, take_all
from tests.tmq.live import LiveEdge as TmqEdge

ELSEWHERE = "127.0.0.3"  # where a sending agent by hand is, as `near` has its own ports


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A text edge of another store: where it waits for links, and for clients."""

    link: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class World:
    server: Server
    tmq: TmqEdge
    ring: LiveClients
    text: TextEdge
    near: RqpEdge
    far: RqpEdge
    net: Net
    neighbour: Neighbour | None = None

    async def declare(self, name: str, **spec: Any) -> Queue:
        """Declare a queue, and return once the edges that use numbers and tags know it."""
        heard: list[str] = []
        for edge in (self.far, self.text):
            edge.service.store.catalogue.watch(heard.append)
        queue = await self.far.declare(name, **spec)
        await until(lambda: heard.count(name) >= 2)
        return queue

    async def drain(self, name: str, count: int) -> list[bytes]:
        """Take all messages of a queue over TMQ once it has at least `count`."""
        client = await self.tmq.client()
        mqid = await client.open(name.encode())
        assert mqid is not None

        async def all_are_there() -> bool:
            return await client.select(mqid) >= count

        await until(all_are_there)
        return await client.drain(mqid)

    async def pass_on(self, source: str, goal: str, count: int) -> None:
        """Move messages from a queue to another, as docs/examples/rqp/pass_on.py does."""
        client = await self.tmq.client()
        goal_id = await client.open(goal.encode())
        assert goal_id is not None
        await client.put(goal_id, *await self.drain(source, count))


@asynccontextmanager
async def world(
    server: Server,
    waits: dict[str, Any] | None = None,
    rqp: dict[str, Any] | None = None,
    mca: dict[str, Any] | None = None,
    cast: dict[str, Any] | None = None,
    neighbour: Neighbour | None = None,
) -> AsyncIterator[World]:
    """Run the world. waits: settings `store` of all edges; rqp, mca, cast: settings of both RQP edges, over quick ones.

    neighbour: the text edge follows it.
    """
    net, store = Net(), {"store": waits or {}}
    both = {**store, **(rqp or {}), "mca": mca or {}}
    links = [] if neighbour is None else [neighbour.link]
    tmq, text = TmqEdge(server.url, **store), TextEdge(server.url, neighbours=links, **store)
    ring = LiveClients(server.url, **store)
    far = RqpEdge(server.url, cast=net.machine(THERE, sends=False, **(cast or {})), **both)
    edges: list[Live[Any]] = [tmq, ring, text, far]
    async with AsyncExitStack() as stack:
        for edge in edges:
            stack.push_async_callback(edge.close)
            await edge.open()
        # either edge may send the messages for RQP/MCA
        await far.tools.peers.apply("far", registered(far.address, window=10), "test")
        near = RqpEdge(server.url, cast=net.machine(HERE, THERE, receives=False, **(cast or {})), **both)
        stack.push_async_callback(near.close)
        await near.open()
        yield World(server, tmq, ring, text, near, far, net, neighbour)
    for edge in (*edges, near):
        edge.check_no_fault_of_ours()


# putting in


async def put_by_tmq(world: World, name: str, number: int, bodies: Sequence[bytes]) -> None:
    client = await world.tmq.client()
    mqid = await client.open(name.encode())
    assert mqid is not None
    await client.put(mqid, *bodies)


async def put_by_ring(world: World, name: str, number: int, bodies: Sequence[bytes]) -> None:
    client = await world.ring.client()
    await client.push(name.encode(), *bodies)


async def put_by_text(world: World, name: str, number: int, bodies: Sequence[bytes]) -> None:
    client = await world.text.client()
    for body in bodies:
        await client.publish(tag_in(name), body)


async def put_by_mca(world: World, name: str, number: int, bodies: Sequence[bytes]) -> None:
    client = await world.far.client()
    await client.request(number)
    await client.put(number, *bodies)
    client.close()


async def put_by_cast(world: World, name: str, number: int, bodies: Sequence[bytes]) -> None:
    with HandSender(world.net, ELSEWHERE) as sender:
        for index, body in enumerate(bodies):
            offer = await sender.asked(number)
            await sender.approve(offer, number * 1000 + index)
            await sender.data(offer, body, number)
            assert (await sender.end()).result is Result.SUCCESS


# taking out


async def take_by_tmq(world: World, name: str, count: int) -> list[bytes]:
    return await world.drain(name, count)


async def take_by_ring(world: World, name: str, count: int) -> list[bytes]:
    client, found = await world.ring.client(), list[bytes]()

    async def all_are_there() -> bool:
        found.extend(await client.drain(name.encode()))
        return len(found) >= count

    await until(all_are_there)
    return found


async def take_by_rqp(world: World, name: str, count: int) -> list[bytes]:
    """Return the messages that `far` has received."""
    return await world.drain(arrived(name), count)


def tag_in(name: str) -> bytes:
    return b"in.%b" % name.encode()


def tag_out(name: str) -> bytes:
    return b"out.%b" % name.encode()


def arrived(name: str) -> str:
    return f"{name}-arrived"


# System V


@asynccontextmanager
async def bridged(world: World, folder: Path, name: str, out: int, into: int) -> AsyncIterator[LiveBridge]:
    """Run a bridge from one local queue to the queue, and from it to another one; 0: not in that direction."""
    bridge = LiveBridge(world.server.url, folder / "journals")
    ways = {"out": out, "in": into}
    mappings = {way: {"key": key, "queue": name, "direction": way} for way, key in ways.items() if key}
    try:
        if mappings:
            await bridge.open(mappings)
        yield bridge
    finally:
        await bridge.close()
    bridge.check_no_fault_of_ours()


MTYPE = 5  # of what is sent


def msgsnd(key: int, bodies: Sequence[bytes]) -> None:
    queue = existing(key)  # the bridge has made it
    for body in bodies:
        queue.send(body, type=MTYPE)


async def msgrcv(key: int, count: int) -> list[tuple[bytes, int]]:
    """Bodies and types."""
    found: list[tuple[bytes, int]] = []

    def all_are_there() -> bool:
        found.extend(take_all(key))
        return len(found) >= count

    await until(all_are_there)
    return found
