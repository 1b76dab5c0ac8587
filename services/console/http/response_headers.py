"""Add headers to every response, and record when it began."""

from __future__ import annotations

import time

from aiohttp import web

from services.console.contract.safe_headers import SAFE, SAFE_PART
from services.console.http.static import Resource
from services.kit.process import remove_server_header

BEGAN = web.RequestKey("response_began", float)


async def prepare(request: web.Request, response: web.StreamResponse) -> None:
    """Add security headers and record the time, as a signal handler of aiohttp."""
    for name, value in (SAFE_PART if isinstance(response, Resource) else SAFE).items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    await remove_server_header(request, response)
    request[BEGAN] = time.monotonic()


def response_began_at(request: web.Request) -> float:
    """Return when the response began, or now if it is about to; live views and slow readers do not count as latency."""
    at: float = request.get(BEGAN, time.monotonic())
    return at
