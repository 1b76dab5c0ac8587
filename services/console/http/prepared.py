"""What every answer is given as it begins to go, and when that was."""

from __future__ import annotations

import time

from aiohttp import web

from services.console.contract.safe_headers import SAFE, SAFE_PART
from services.console.http.static import Part
from services.kit.process import remove_server_header

BEGAN = web.RequestKey("answer_began", float)


async def prepare(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in (SAFE_PART if isinstance(response, Part) else SAFE).items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    await remove_server_header(request, response)
    request[BEGAN] = time.monotonic()


def answered_at(request: web.Request) -> float:
    """When its answer began, or now, if it is about to: who watches, or reads slowly, makes it no slower."""
    at: float = request.get(BEGAN, time.monotonic())
    return at
