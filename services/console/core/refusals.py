"""Answers to what is refused, and how: problems, whoever found them, and what is refused before it is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from services.console.contract.problems import CONTENT_TYPE, Problem
from services.console.core.route import Route
from services.console.http.bodies import too_large


def expecting(route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse | None]]:
    """Who asks first (`Expect: 100-continue`) need not send what would be refused for its length."""

    async def expect(request: web.Request) -> web.StreamResponse | None:
        """Nobody stands around this one: what it raised would be taken for a fault of ours."""
        if request.headers.get("Expect", "").lower() != "100-continue":
            text = "the only expectation that is known is 100-continue"
            return refused(request, Problem(417, "expectation_failed", text))
        if request.content_length is not None and request.content_length > route.longest:
            return refused(request, too_large(route.longest))
        assert request.transport is not None
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return None

    return expect


def refused(request: web.Request, problem: Problem) -> web.Response:
    headers = {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store", **problem.headers}
    response = web.Response(body=problem.body(request.path), status=problem.status, headers=headers)
    if problem.status in (408, 413, 415, 417):
        response.force_close()  # what else is on its way is not read
    return response


def of_http(error: web.HTTPException, request: web.Request) -> Problem:
    """What aiohttp itself refuses."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        text = f"{request.method} is not for {request.path!r}: it takes {allowed}"
        return Problem(405, "method_not_allowed", text, headers={"Allow": allowed})
    if error.status == 404:
        return Problem(404, "not_found", f"there is nothing at {request.path!r}")
    return Problem(error.status, "bad_request", error.reason)
