"""Serve /metrics, /healthz and /readyz."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

from services.kit.config.layers import SettingsError
from services.kit.config.settings import HealthSettings
from services.kit.edge import Page
from services.kit.metrics.metrics import CONTENT_TYPE
from services.kit.net.acceptor import AddressInUse, listen_error, open_listening
from services.kit.net.connection_limits import plain_address
from services.kit.net.refusals import Refusal, Refusals
from services.kit.process.http_handler import HttpHandler, remove_server_header
from services.kit.readiness import Readiness
from services.kit.session.session import Peer

log = logging.getLogger(__name__)

SETTING = ("health", "port")
LISTENER = "health"


@dataclass(frozen=True, slots=True)
class HealthSources:
    """The functions that provide the content of the health pages."""

    metrics: Callable[[], bytes]  # called in a thread, as rendering thousands of series takes long
    readiness: Readiness  # whether requests can be served
    stuck: Callable[[], str | None]  # why the process should be restarted, or None; never about the store
    refresh: Callable[[], None] = lambda: None  # called in the loop before `metrics`


class HealthServer:
    """Server of /metrics, /healthz (200, or 503 if stuck), /readyz (200, or 503 and the unmet need) and `pages`.

    `pages` maps paths to pages, and may grow later: an edge adds its pages when it starts.
    """

    def __init__(
        self, settings: HealthSettings, sources: HealthSources, pages: Mapping[str, Page] | None = None
    ) -> None:
        self._settings = settings
        self._sources = sources
        self._pages = {} if pages is None else pages
        self._scrapes = asyncio.Lock()  # one scrape at a time
        app = web.Application()
        app.on_response_prepare.append(remove_server_header)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/{name}", self._page)
        self._runner = web.AppRunner(app, handle_signals=False)
        self._servers: list[asyncio.Server] = []
        self._refusals = Refusals("", LISTENER)

    async def start(self, sockets: Sequence[socket.socket] = ()) -> tuple[str, int]:
        """Serve on these sockets, or on those of the settings. Return the first address. Raises SettingsError."""
        sockets = sockets or health_sockets(self._settings)
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._servers = [await loop.create_server(self._handler, sock=sock) for sock in sockets]
        host, port = sockets[0].getsockname()[:2]
        fields = {"action": "health_listening", "host": host, "port": port, "setting": SETTING}
        log.info("health and metrics on %s port %d", host, port, extra=fields)
        return host, port

    async def close(self) -> None:
        """Stop listening and end all requests."""
        for server in self._servers:
            server.close()
        await self._runner.cleanup()

    def _handler(self) -> HttpHandler:
        assert isinstance(self._runner.server, web.Server)
        handler = HttpHandler(self._runner.server, lambda fault: self._refused(handler, fault))
        return handler

    def _refused(self, handler: HttpHandler, fault: str) -> None:
        now = asyncio.get_running_loop().time()
        self._refusals.tick(now)
        assert handler.transport is not None
        # a connection that the client has reset has no peer name
        host, port = (handler.transport.get_extra_info("peername") or ("unknown", 0))[:2]
        self._refusals.log(Refusal.PROXY_HEADER, Peer(plain_address(host), port), None, fault, now)

    async def _metrics(self, _: web.Request) -> web.Response:
        async with self._scrapes:
            self._sources.refresh()
            body = await asyncio.to_thread(self._sources.metrics)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    async def _healthz(self, _: web.Request) -> web.Response:
        return _page(self._sources.stuck())

    async def _readyz(self, _: web.Request) -> web.Response:
        return _page(self._sources.readiness.unready())

    async def _page(self, request: web.Request) -> web.Response:
        page = self._pages.get(request.path)
        if page is None:
            raise web.HTTPNotFound
        return web.json_response(dict(page()))


def _page(fault: str | None) -> web.Response:
    return web.Response(text="ok\n") if fault is None else web.Response(text=f"{fault}\n", status=503)


def health_sockets(settings: HealthSettings) -> list[socket.socket]:
    """Return a listening socket for each address of the host. Raises SettingsError."""
    try:
        return _sockets(settings.host or "::", settings.port)
    except AddressInUse:
        if not settings.may_move:
            raise
        return _sockets(settings.host or "::", 0)


def _sockets(host: str, port: int) -> list[socket.socket]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise listen_error(host, port, SETTING, error) from None
    sockets: list[socket.socket] = []
    for address in dict.fromkeys(str(place[0]) for *_, place in found):
        try:
            sockets.append(open_listening(address, port, SETTING))
        except SettingsError:
            for sock in sockets:
                sock.close()
            raise
    return sockets


def serve_forever(settings: HealthSettings, sources: HealthSources, sockets: Sequence[socket.socket]) -> None:
    """Serve on these sockets, in a process of its own."""

    async def serve() -> None:
        await HealthServer(settings, sources).start(sockets)
        await asyncio.Event().wait()

    asyncio.run(serve())
