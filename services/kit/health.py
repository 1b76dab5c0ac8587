"""The pages that tell others how a process is: /metrics, /healthz, /readyz."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aiohttp import web

from services.kit.acceptor import open_bound
from services.kit.edge import Page
from services.kit.layers import SettingsError
from services.kit.metrics import CONTENT_TYPE
from services.kit.settings import HealthSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answers:
    """Where the pages get their content."""

    metrics: Callable[
        [], bytes
    ]  # called in a thread: thousands of series take long to write, and clients would wait
    unready: Callable[[], str | None]  # why requests cannot be served, or None
    stuck: Callable[[], str | None]  # why the process had better be killed, or None; never about the store
    freshen: Callable[[], None] = lambda: None  # what is to be done in the loop before `metrics`


class HealthServer:
    """GET /metrics, /healthz (200, or 503 if stuck), /readyz (200, or 503 and the reason); and `pages`, by path.

    Pages may be added later: an edge has them once it has started.
    """

    def __init__(
        self, settings: HealthSettings, answers: Answers, pages: Mapping[str, Page] | None = None
    ) -> None:
        self._settings = settings
        self._answers = answers
        self._pages = {} if pages is None else pages
        self._scrapes = asyncio.Lock()  # one at a time
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/{name}", self._page)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)

    async def start(self) -> tuple[str, int]:
        """Returns the address bound. Raises SettingsError if it cannot be had."""
        await self._runner.setup()
        host, port = self._settings.host, self._settings.port
        try:
            await self._site(host, port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise SettingsError([f"cannot serve health on {host} port {port}: {error.strerror}"]) from None
        host, port = self._runner.addresses[0][:2]
        fields = {"action": "health_listening", "host": host, "port": port}
        log.info("health and metrics on %s port %d", host, port, extra=fields)
        return host, port

    def _site(self, host: str, port: int) -> web.BaseSite:
        """Raises OSError. Of names each address is bound; of `::` asyncio would leave out IPv4."""
        if ":" in host:
            return web.SockSite(self._runner, open_bound(host, port))
        return web.TCPSite(self._runner, host, port)

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        async with self._scrapes:
            self._answers.freshen()
            body = await asyncio.to_thread(self._answers.metrics)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    async def _healthz(self, _: web.Request) -> web.Response:
        return _page(self._answers.stuck())

    async def _readyz(self, _: web.Request) -> web.Response:
        return _page(self._answers.unready())

    async def _page(self, request: web.Request) -> web.Response:
        page = self._pages.get(request.path)
        if page is None:
            raise web.HTTPNotFound
        return web.json_response(dict(page()))


def _page(fault: str | None) -> web.Response:
    return web.Response(text="ok\n") if fault is None else web.Response(text=f"{fault}\n", status=503)


def serve_forever(settings: HealthSettings, answers: Answers) -> None:
    """In a process that does nothing else. Raises SettingsError if the address cannot be had."""

    async def serve() -> None:
        await HealthServer(settings, answers).start()
        await asyncio.Event().wait()

    asyncio.run(serve())
