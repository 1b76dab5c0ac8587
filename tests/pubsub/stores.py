"""Several stores with an edge each, to be joined by links; functions that return their content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from services.pubsub.links.held import united
from services.store.log.log import START, Entry
from services.store.log.replica import Held, Replica
from services.store.model.intervals import Intervals
from tests.live import set_up, until
from tests.pubsub.client import Client
from tests.pubsub.live import LISTENERS, LiveEdge
from tests.servers import Server

SENDS = 500  # lines that a client writes before it reads the answers

NewServer = Callable[[], Server]


async def store(new_server: NewServer) -> Server:
    """Start and set up a store."""
    server = new_server()
    await set_up(server)
    return server


def links_at(port: int, **more: Any) -> dict[str, dict[str, Any]]:
    """Return listeners, with the one for links on a known port; more: its settings."""
    return {**LISTENERS, "link": {"port": port, "serves": "links", **more}}


async def linked(edge: LiveEdge, number: int = 1) -> None:
    """Wait until the edge follows so many neighbours."""
    await until(lambda: edge.value("penstock_links_following") == number)


async def unlinked(edge: LiveEdge) -> None:
    """Wait until it follows no neighbour and no neighbour follows it."""
    await until(
        lambda: not edge.value("penstock_links_following") and not edge.value("penstock_links_serving")
    )


async def send_all(client: Client, tag: bytes, messages: list[bytes]) -> None:
    """Send messages and wait until all are stored."""
    for start in range(0, len(messages), SENDS):
        part = messages[start : start + SENDS]
        await client.send(b"".join([b"SEND %b %b\n" % (tag, message) for message in part]))
        assert await client.lines(len(part)) == [b"OK\n"] * len(part)


def numbered(prefix: str, number: int, first: int = 0) -> list[bytes]:
    return [f"{prefix}{i}".encode() for i in range(first, first + number)]


async def held(edge: LiveEdge) -> Held:
    """Return what the edge's store holds, including its own numbers."""
    found = (await Replica(edge.service.log).state()).held
    return {origin: numbers for origin, numbers in found.items() if numbers}


async def known(edge: LiveEdge) -> Held:
    """Return what the edge's store holds or knows to be trimmed."""
    state = await Replica(edge.service.log).state()
    return {origin: numbers for origin, numbers in united(state.held, state.gone).items() if numbers}


async def hold_the_same(*edges: LiveEdge, number: int = 0) -> Held:
    """Wait until all stores hold or know as trimmed the same numbers, at least so many; return them."""

    async def same() -> bool:
        first, *others = [await known(edge) for edge in edges]
        return all(other == first for other in others) and messages_in(first) >= number

    await until(same)
    return await known(edges[0])


def messages_in(numbers: Held) -> int:
    return sum(last - first + 1 for spans in numbers.values() for first, last in spans.spans)


async def entries(edge: LiveEdge) -> list[Entry]:
    """Return the whole log."""
    found: list[Entry] = []
    while more := await edge.service.log.read(found[-1].place if found else START):
        found += more
    return found


async def messages(edge: LiveEdge) -> list[bytes]:
    """Return the messages in the log, in order."""
    return [line.split(b" ", 2)[2] for entry in await entries(edge) for line in entry.block.split(b"\n")[:-1]]


async def has_all(edge: LiveEdge, wanted: list[bytes]) -> None:
    """Return whether the log has each message once."""

    async def has() -> bool:
        found = [message for message in await messages(edge) if message in expected]
        assert len(found) == len(set(found))
        return len(found) == len(expected)

    expected = set(wanted)
    await until(has)


async def figure(edge: LiveEdge, name: str) -> int:
    """Return a counter of the log in the store."""
    return int((await edge.service.log.figures()).get(name, 0))


class Neighbour:
    """The other side of a link, operated line by line by a test. Made by `meet`."""

    def __init__(self, client: Client, name: bytes) -> None:
        self.client = client
        self.name = name
        self.have = b""  # the edge's greeting
        self.wish = b""  # and its FOLLOW

    @classmethod
    async def meet(
        cls, edge: LiveEdge, name: bytes = b"other", held: bytes = b"-", receive_buffer: int = 0
    ) -> Neighbour:
        """Wait until both sides have greeted and the edge has sent FOLLOW."""
        neighbour = cls(await edge.client("link", receive_buffer), name)
        await neighbour.say(b"HAVE 1 %b inc1 %b" % (name, held))
        neighbour.have = await neighbour.hear(b"HAVE")
        neighbour.wish = await neighbour.hear(b"FOLLOW")
        return neighbour

    async def follow(self, held: bytes = b"-", position: bytes = b"") -> None:
        await self.say(b"FOLLOW 1 %b inc1 %b%b" % (self.name, held, position and b" " + position))

    async def say(self, *lines: bytes) -> None:
        await self.client.send(b"".join([line + b"\n" for line in lines]))

    async def hear(self, verb: bytes) -> bytes:
        """Return the next line of that verb without its end, skipping BEATs."""
        while True:
            line = await self.client.line()
            if line.startswith(verb):
                return line[:-1]
            assert line.startswith(b"BEAT"), line

    async def entry(self, number: int, tag: bytes, message: bytes) -> None:
        await self.say(b"ENTRY %b inc1 %d %b %b" % (self.name, number, tag, message))

    async def closed(self) -> None:
        """Wait until the edge closes the link gracefully."""
        while line := await self.client.line():
            assert line.startswith((b"BEAT", b"ENTRY", b"FOLLOW", b"HAVE", b"GAP", b"ERROR")), line
        self.client.close()


def whole(*spans: tuple[int, int]) -> Intervals:
    return Intervals.of(spans)
