"""What every answer is given as it begins to go, and when that was."""

from __future__ import annotations

import time

from aiohttp import web

from services.console.static import Part

CSP = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
SAFE_PART = {
    "X-Content-Type-Options": "nosniff"
}  # of a script, a style or a font: the others do nothing there
SAFE = {
    **SAFE_PART,
    "Content-Security-Policy": CSP,
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
BEGAN = web.RequestKey("answer_began", float)


async def prepare(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in (SAFE_PART if isinstance(response, Part) else SAFE).items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.pop("Server", None)
    request[BEGAN] = time.monotonic()


def answered_at(request: web.Request) -> float:
    """When its answer began, or now, if it is about to: who watches, or reads slowly, makes it no slower."""
    at: float = request.get(BEGAN, time.monotonic())
    return at
