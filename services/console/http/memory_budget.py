"""Limit what requests use at a time: memory for bodies and large responses, and the number of expensive operations."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import cast

from aiohttp import web

from services.console.contract.problems import RETRY_S, Problem
from services.console.http.http_site import HttpConnection

OCTETS = 64 << 20  # of bodies and responses, in total
OPEN_OCTETS = 8 << 20  # the same, of responses that need no token
MAX_READS = 4  # of messages and dead letters, whose size is not known before
MAX_SEARCHES = 2  # of dead letters by a pattern: one per thread
MAX_OPERATIONS = 8
CHUNK = 64 << 10
LARGE = CHUNK  # a larger response is sent in chunks, so that slow clients hold little memory


class MemoryBudget:
    """Memory for bodies and responses, and limits of expensive operations."""

    def __init__(self, octets: int = OCTETS) -> None:
        self._left = octets
        self.reading = asyncio.Semaphore(MAX_READS)
        self.searching = asyncio.Semaphore(MAX_SEARCHES)
        self.process_queries = ConcurrencyLimit("queries to all processes")
        self.dry_runs = ConcurrencyLimit("dry runs")

    @contextlib.contextmanager
    def share(self) -> Iterator[Share]:
        """Open one request's share, which is returned at the end."""
        share = Share(self)
        try:
            yield share
        finally:
            self._left += share.octets

    def take(self, octets: int) -> None:
        """Reserve octets. Raises Problem 503 if the budget is used up."""
        if octets > self._left:
            text = "the memory for requests and responses is used up: try again soon"
            raise Problem(503, "busy", text, headers={"Retry-After": str(RETRY_S)})
        self._left -= octets


class ConcurrencyLimit:
    """A limit of concurrent operations; further ones are rejected, as they would wait for seconds."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._left = MAX_OPERATIONS

    @contextlib.contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot. Raises Problem 429 if all are in use."""
        if not self._left:
            text = f"{MAX_OPERATIONS} {self._what} are in progress: try again soon"
            raise Problem(429, "too_many_questions", text, headers={"Retry-After": str(RETRY_S)})
        self._left -= 1
        try:
            yield
        finally:
            self._left += 1


class Share:
    """The memory that one request has reserved."""

    def __init__(self, budget: MemoryBudget) -> None:
        self.octets = 0
        self._budget = budget

    def take(self, octets: int) -> None:
        """Reserve further octets. Raises Problem 503."""
        self._budget.take(octets)
        self.octets += octets

    def take_encoded(self, octets: int) -> None:
        """Reserve the length of so many octets in base64. Raises Problem 503."""
        self.take((octets + 2) // 3 * 4)

    def cover(self, octets: int) -> None:
        """Raise the reservation to so many octets, if that is large. Raises Problem 503."""
        if octets > max(self.octets, LARGE):
            self.take(octets - self.octets)


async def send(request: web.Request, response: web.StreamResponse, timeout_s: float) -> web.StreamResponse:
    """Send a large response in chunks while its memory is reserved; abort if the client reads nothing for so long."""
    body = response.body if isinstance(response, web.Response) else None
    if not isinstance(body, bytes) or len(body) <= LARGE or request.method == "HEAD":
        return response
    sent = web.StreamResponse(status=response.status, headers=response.headers)
    sent.content_length = len(body)
    try:
        await sent.prepare(request)
        for at in range(0, len(body), CHUNK):
            async with asyncio.timeout(timeout_s):
                await sent.write(body[at : at + CHUNK])
        await sent.write_eof()
    except ConnectionError:
        if request.transport is not None:
            request.transport.abort()
    except TimeoutError:
        cast(HttpConnection, request.protocol).time_out()
    return sent
