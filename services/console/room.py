"""How much memory requests may have at a time: bodies that come, and dead letters that go, until they are sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from aiohttp import web

from services.console.problems import RETRY_S, Problem

OCTETS = 64 << 20  # of bodies, in all
FINDS = 4  # dead letters that are read at a time, as nobody knows before how large they are
LARGE = 1 << 20  # octets of an answer that is sent in pieces
PIECE = 64 << 10


class Room:
    def __init__(self, octets: int = OCTETS) -> None:
        self._left = octets
        self.finding = asyncio.Semaphore(FINDS)

    @contextlib.contextmanager
    def share(self) -> Iterator[Share]:
        """What one request takes; it is given back at the end."""
        share = Share(self)
        try:
            yield share
        finally:
            self._left += share.octets

    def take(self, octets: int) -> None:
        """Raises Problem 503."""
        if octets > self._left:
            text = "as much as the console keeps in memory is on its way already: try again soon"
            raise Problem(503, "busy", text, headers={"Retry-After": str(RETRY_S)})
        self._left -= octets


class Share:
    def __init__(self, room: Room) -> None:
        self.octets = 0
        self._room = room

    def take(self, octets: int) -> None:
        """So many more. Raises Problem 503."""
        self._room.take(octets)
        self.octets += octets


async def send(request: web.Request, response: web.StreamResponse, timeout_s: float) -> web.StreamResponse:
    """A large answer, piece by piece, while its share is held; who takes nothing for so long is let go."""
    body = response.body if isinstance(response, web.Response) else None
    if not isinstance(body, bytes) or len(body) <= LARGE or request.method == "HEAD":
        return response
    sent = web.StreamResponse(status=response.status, headers=response.headers)
    sent.content_length = len(body)
    try:
        await sent.prepare(request)
        for at in range(0, len(body), PIECE):
            async with asyncio.timeout(timeout_s):
                await sent.write(body[at : at + PIECE])
        await sent.write_eof()
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    return sent
