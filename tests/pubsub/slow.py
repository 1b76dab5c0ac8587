"""Subscribers that read slowly, and messages for them."""

from __future__ import annotations

import asyncio

from services.pubsub.backlogs import PLENTY
from services.pubsub.subscriber import Subscription
from services.store import Source, StoreError
from services.store.model.operations import Placed
from tests.live import until
from tests.pubsub.client import Client
from tests.pubsub.live import LiveEdge

SMALL = 4096  # octets of a client's receive buffer
TIGHT = {"subscriber_bytes": 64 << 10}
BODY = b"x" * 1000


async def publish(sender: Client, first: int, number: int, tag: bytes = b"t", at_once: int = 500) -> None:
    """Send messages `<n> xxx...` and wait for the answers."""
    for start in range(first, first + number, at_once):
        end = min(start + at_once, first + number)
        await sender.send(b"".join(b"SEND %b %d %b\n" % (tag, n, BODY) for n in range(start, end)))
        assert await sender.lines(end - start) == [b"OK\n"] * (end - start)


async def numbers(client: Client, number: int) -> list[int]:
    return [int(line.split()[2]) for line in await client.lines(number)]


def behind(edge: LiveEdge) -> int:
    return len(edge.service.slow_consumers)


async def stuck(edge: LiveEdge) -> None:
    """Wait until a client's output is blocked, also in the kernel."""

    async def stays() -> bool:
        before = {connection: connection.backlog() for connection in edge.connections()}
        await asyncio.sleep(0.02)
        return any(PLENTY.room < size == connection.backlog() for connection, size in before.items())

    await until(stays)


class LateAnswers:
    """Delays the store's answers to SUBSCRIBE until they are released."""

    def __init__(self, edge: LiveEdge) -> None:
        self._log = edge.service.log
        self._fanout = edge.service.fanout
        self._slow_consumers = edge.service.slow_consumers
        self._held: list[tuple[Placed, str | StoreError]] = []
        self._head = self._log.head
        self._log.head = self._hold  # type: ignore[method-assign]

    def _hold(self, source: Source, placed: Placed) -> None:
        self._head(source, lambda place: self._held.append((placed, place)))

    async def given(self) -> None:
        """Return whether the store has answered."""
        await until(lambda: self._held)

    async def let_through(self) -> list[Subscription]:
        """Release the answers once the edge has read the whole log; return the late subscriptions."""

        async def is_followed() -> bool:
            place = self._fanout.place
            return place is not None and place.serial == int((await self._log.figures())["serial"])

        await until(is_followed)
        self._log.head = self._head  # type: ignore[method-assign]
        for placed, place in self._held:
            placed(place)
        return [whose for whose in self._slow_consumers.behind if isinstance(whose, Subscription)]
