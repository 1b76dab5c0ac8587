"""Respond to requests that aiohttp cannot read, and which never reach the application."""

from __future__ import annotations

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from services.console.contract.problems import CONTENT_TYPE, Problem
from services.console.contract.safe_headers import SAFE, SERVER


def unreadable(status: int, error: BaseException | None) -> web.Response:
    """Return the problem, and close the connection afterwards."""
    if status >= 500:
        problem = Problem(status, "fault", "internal error: see the console's log")
    elif isinstance(error, LineTooLong):
        problem = Problem(status, "bad_request", "the request's first line or a header is too long")
    else:
        problem = Problem(status, "bad_request", "the request is not valid HTTP/1.1")
    headers = {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store", **SAFE, "Server": SERVER}
    response = web.Response(body=problem.body(""), status=status, headers=headers)
    response.force_close()
    return response
