"""aiohttp's end of a connection to one of our HTTP ports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from aiohttp import web

from services.kit.net.proxy_header import proxy_fault, proxy_version


class HttpHandler(web.RequestHandler):
    """Closes a connection that begins with a PROXY header, which aiohttp would call invalid HTTP.

    No answer names libraries and their versions.
    """

    __slots__ = ("_is_new", "_proxied")

    def __init__(
        self, server: web.Server, proxied: Callable[[str], None], keepalive_timeout_s: float = 75.0
    ) -> None:
        """proxied: told what is wrong with such a connection."""
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=keepalive_timeout_s,
            access_log=None,  # type: ignore[arg-type]
            auto_decompress=False,  # a body comes as it is, or not at all
        )
        self._is_new = True
        self._proxied = proxied

    def data_received(self, data: bytes) -> None:
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
        # aiohttp logs the error, and raises where nothing can be sent
        answer = super().handle_error(request, status, exc, message)
        return self.unreadable(answer.status, exc)

    def unreadable(self, status: int, _: BaseException | None) -> web.StreamResponse:
        """Return the answer to what cannot be read, or to an error outside of the application."""
        told = web.Response(status=status, text=f"{HTTPStatus(status).phrase}\n")
        told.headers["Server"] = "penstock"
        told.force_close()
        return told


async def remove_server_header(_: web.Request, response: web.StreamResponse) -> None:
    """Take the header that aiohttp writes of itself off an answer: a signal `on_response_prepare`."""
    response.headers.pop("Server", None)
