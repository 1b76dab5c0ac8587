"""Subscribers that read slowly, and what is sent to them meanwhile."""

from __future__ import annotations

from tests.pubsub.client import Client
from tests.pubsub.live import LiveEdge

SMALL = 4096  # octets of a client's receive buffer
TIGHT = {"subscriber_bytes": 64 << 10}
BODY = b"x" * 1000


async def publish(sender: Client, first: int, number: int, tag: bytes = b"t", at_once: int = 500) -> None:
    """Messages `<n> xxx...`, all answered."""
    for start in range(first, first + number, at_once):
        end = min(start + at_once, first + number)
        await sender.send(b"".join(b"SEND %b %d %b\n" % (tag, n, BODY) for n in range(start, end)))
        assert await sender.lines(end - start) == [b"OK\n"] * (end - start)


async def numbers(client: Client, number: int) -> list[int]:
    return [int(line.split()[2]) for line in await client.lines(number)]


def behind(edge: LiveEdge) -> int:
    return len(edge.service.laggards)
