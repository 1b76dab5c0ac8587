"""Use the log of a desk's store: await sends, raise refusals, and read lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from services.store import Queue, QueueSpec, Source
from services.store.log.log import (
    NO_SUBSCRIPTIONS,
    START,
    Entry,
    Log,
    LogSpec,
    Place,
    Subscriptions,
    parse_place,
)
from services.store.log.replica import Arrived, Gap, LogState, Origin, Replica
from services.store.model import records
from services.store.model.operations import Send
from tests.store.desk import Desk

ORIGIN = "text 127.0.0.1"


def block(*lines: bytes) -> bytes:
    """Encode lines `tag message`."""
    return b"".join(b"SEND %b\n" % line for line in lines)


def arrived(origin: Origin, first: int, *lines: bytes, copies: Any = (), bridged: bool = False) -> Arrived:
    """Return lines as a neighbour sends them."""
    return Arrived(*origin, first, len(lines), bridged, block(*lines), list(copies))


def weight(entry: Entry) -> int:
    """Return the memory that the log counts for an entry (lua/log.lua)."""
    return len(entry.block) + len(entry.block) // 8 + len(entry.origin) + 48


def own(state: LogState) -> Origin:
    return state.store, state.incarnation


class Logbook:
    """The log of a store; `known` has the bindings that sends use."""

    def __init__(self, desk: Desk, spec: LogSpec | None = None) -> None:
        self.desk = desk
        self.log = Log(desk.domain, spec or LogSpec())
        self.replica = Replica(self.log)
        self.known: Subscriptions = NO_SUBSCRIPTIONS

    async def bound(self, name: str, *patterns: str, **spec: Any) -> Queue:
        """Declare a queue that subscribes, and update the known bindings."""
        bindings = {"text": {"subscribe": patterns}}
        queue = await self.desk.queue(name, bindings=bindings, **spec)
        await self.refresh()
        return queue

    async def publishing(self, name: str, tag: str, **spec: Any) -> Queue:
        """Declare a queue that publishes under a tag."""
        return await self.desk.queue(name, bindings={"text": {"publish": tag}}, **spec)

    async def change(self, queue: Queue, **spec: Any) -> None:
        """Replace the queue's document."""
        await self.desk.store.catalogue.declare(queue.name, QueueSpec(**spec), "test", replace=True)

    async def refresh(self) -> None:
        self.known = await self.log.subscriptions()

    # verbs

    def sending(
        self, *lines: bytes, to: tuple[Queue, ...] = (), source: Source | None = None
    ) -> asyncio.Future[None]:
        """Start a Send; the queues `to` get copies of the message of its only line."""
        future, done = self.desk.expecting()
        copies = [(queue, records.encode(lines[0].partition(b" ")[2])) for queue in to]
        send = Send(block(*lines), len(lines), copies, ORIGIN, self.known.version, done)
        self.log.send(source or self.desk.source, send)
        return future

    async def send(self, *lines: bytes, to: tuple[Queue, ...] = ()) -> None:
        await self.sending(*lines, to=to)

    def asking_head(self, source: Source | None = None) -> asyncio.Future[str]:
        future, done = self.desk.expecting()
        self.log.head(source or self.desk.source, done)
        return future

    async def head(self) -> Place:
        return parse_place(await self.asking_head())

    async def accept(self, *items: Arrived | Gap) -> tuple[int, int]:
        return await self.replica.accept(list(items), self.known)

    async def state(self) -> LogState:
        return await self.replica.state()

    # what is there

    async def entries(self, after: Place = START) -> list[Entry]:
        found: list[Entry] = []
        while more := await self.log.read(found[-1].place if found else after):
            found += more
        return found

    async def lines(self, after: Place = START) -> list[bytes]:
        """Return the sent lines without the verb."""
        whole = b"".join(entry.block for entry in await self.entries(after))
        return [line.removeprefix(b"SEND ") for line in whole.splitlines()]

    async def counter(self, name: str) -> int:
        return int((await self.log.figures()).get(name, 0))


@asynccontextmanager
async def logbook(desk: Desk, spec: LogSpec | None = None) -> AsyncIterator[Logbook]:
    """Declare the log of a desk's store."""
    book = Logbook(desk, spec)
    await book.log.declare()
    try:
        yield book
    finally:
        await book.log.close()


def check_places(entries: list[Entry], before: int = 0) -> None:
    """Check that places increase and count messages; before: messages before these."""
    place = Place(0, before)
    for entry in entries:
        assert entry.place > place
        assert entry.place.serial == place.serial + entry.messages
        assert entry.messages == entry.block.count(b"\n")
        place = entry.place


def check_numbering(entries: list[Entry], before: int = 0) -> dict[bytes, int]:
    """Check places, and that numbers of each origin are consecutive; return the next number of each."""
    check_places(entries, before)
    following: dict[bytes, int] = {}
    for entry in entries:
        assert entry.first == following.get(entry.origin, entry.first)
        following[entry.origin] = entry.first + entry.messages
    return following
