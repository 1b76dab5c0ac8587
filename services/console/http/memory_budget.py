"""How much requests may have at a time: memory, for bodies that come and large answers, until they are sent; and
turns of what costs the store a connection, or the time of all edges."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import cast

from aiohttp import web

from services.console.contract.problems import RETRY_S, Problem
from services.console.http.http_site import Visitor

OCTETS = 64 << 20  # of bodies and answers, in all
OPEN_OCTETS = 8 << 20  # of what strangers may read as well, who take nobody else's room
FINDS = 4  # reads of messages and dead letters at a time, as nobody knows before how large they are
SEARCHES = 2  # the same, of dead letters that a pattern is to fit: as many as there are threads for it
TURNS = 8
PIECE = 64 << 10
LARGE = PIECE  # an answer of more octets is sent in pieces: a thousand who take nothing keep no more


class Room:
    def __init__(self, octets: int = OCTETS) -> None:
        self._left = octets
        self.finding = asyncio.Semaphore(FINDS)
        self.searching = asyncio.Semaphore(SEARCHES)
        self.asking = Turns("questions to all processes")
        self.counting = Turns("dry runs")

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


class Turns:
    """So many at a time, and the others are sent away: who waits here would wait for seconds."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._left = TURNS

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Raises Problem 429."""
        if not self._left:
            text = f"{TURNS} {self._what} are under way: try again soon"
            raise Problem(429, "too_many_questions", text, headers={"Retry-After": str(RETRY_S)})
        self._left -= 1
        try:
            yield
        finally:
            self._left += 1


class Share:
    def __init__(self, room: Room) -> None:
        self.octets = 0
        self._room = room

    def take(self, octets: int) -> None:
        """So many more. Raises Problem 503."""
        self._room.take(octets)
        self.octets += octets

    def take_encoded(self, octets: int) -> None:
        """What so many octets are as base64. Raises Problem 503."""
        self.take((octets + 2) // 3 * 4)

    def cover(self, octets: int) -> None:
        """So many in all, if they are worth counting. Raises Problem 503."""
        if octets > max(self.octets, LARGE):
            self.take(octets - self.octets)


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
    except ConnectionError:
        if request.transport is not None:
            request.transport.abort()
    except TimeoutError:
        cast(Visitor, request.protocol).let_go()
    return sent
