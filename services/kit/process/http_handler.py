"""Handle connections to HTTP ports: refuse PROXY protocol headers, hide library versions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from aiohttp import web

from services.kit.net.proxy_header import proxy_fault, proxy_version


class HttpHandler(web.RequestHandler):
    """Handler that closes connections with a PROXY protocol header, which aiohttp would report as invalid HTTP.

    Responses do not name libraries or their versions.
    """

    __slots__ = ("_is_new", "_proxied")

    def __init__(
        self, server: web.Server, proxied: Callable[[str], None], keepalive_timeout_s: float = 75.0
    ) -> None:
        """Call `proxied` with the error of each connection that begins with a PROXY header."""
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=keepalive_timeout_s,
            access_log=None,  # type: ignore[arg-type]
            auto_decompress=False,  # compressed bodies are not supported
        )
        self._is_new = True
        self._proxied = proxied

    def data_received(self, data: bytes) -> None:
        """Pass input to aiohttp, unless it begins with a PROXY header."""
        if self._is_new:
            self._is_new = False
            if (version := proxy_version(data)) is not None:
                self._proxied(proxy_fault(version))
                self.force_close()
                return
        super().data_received(data)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Let aiohttp log the error, and return a response without versions. Raises if nothing can be sent."""
        return self.unreadable(super().handle_error(request, status, exc, message).status, exc)

    def unreadable(self, status: int, _: BaseException | None) -> web.StreamResponse:
        """Return the response to an unreadable request, or to an error outside of the application."""
        response = web.Response(status=status, text=f"{HTTPStatus(status).phrase}\n")
        response.headers["Server"] = "penstock"
        response.force_close()
        return response


async def remove_server_header(_: web.Request, response: web.StreamResponse) -> None:
    """Remove aiohttp's version from a response: a handler of the signal `on_response_prepare`."""
    response.headers.pop("Server", None)
