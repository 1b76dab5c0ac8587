"""Build error responses, also to `Expect: 100-continue`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from services.console.contract.problems import CONTENT_TYPE, Problem
from services.console.core.route import Route
from services.console.http.bodies import too_large


def expecting(route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse | None]]:
    """Return a handler of `Expect: 100-continue` that rejects large bodies before they are sent."""

    async def expect(request: web.Request) -> web.StreamResponse | None:
        """Return None to continue, or the error response: an exception would be logged as an internal error."""
        if request.headers.get("Expect", "").lower() != "100-continue":
            text = "only Expect: 100-continue is supported"
            return error_response(request, Problem(417, "expectation_failed", text))
        if request.content_length is not None and request.content_length > route.longest:
            return error_response(request, too_large(route.longest))
        assert request.transport is not None
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return None

    return expect


def error_response(request: web.Request, problem: Problem) -> web.Response:
    """Return the response for a problem."""
    headers = {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store", **problem.headers}
    response = web.Response(body=problem.body(request.path), status=problem.status, headers=headers)
    if problem.status in (408, 413, 415, 417):
        response.force_close()  # the rest of the body is not read
    return response


def problem_of_http(error: web.HTTPException, request: web.Request) -> Problem:
    """Return the problem for an error that aiohttp raised."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        text = f"{request.method} is not supported for {request.path!r}: use {allowed}"
        return Problem(405, "method_not_allowed", text, headers={"Allow": allowed})
    if error.status == 404:
        return Problem(404, "not_found", f"no resource at {request.path!r}")
    return Problem(error.status, "bad_request", error.reason)
