"""Helpers of fixtures: edges as machines of one net."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.rqp.cast.net import HERE, THERE, Net
from tests.rqp.live import LiveEdge
from tests.servers import Server

Start = Callable[..., Awaitable[LiveEdge]]


class Machines:
    """Edges, on `server` by default; `net` has the ports that they share."""

    def __init__(self, start: Start, server: Server) -> None:
        self.net = Net()
        self._start = start
        self._server = server

    async def receiver(
        self,
        host: str = THERE,
        server: Server | None = None,
        edge: dict[str, Any] | None = None,
        **cast: Any,
    ) -> LiveEdge:
        """Start an edge that receives at 127.0.0.2 and sends nothing. edge: settings besides those of cast."""
        settings = self.net.machine(host, **{"sends": False, **cast})
        return await self._start(server or self._server, cast=settings, **(edge or {}))

    async def sender(
        self,
        host: str = HERE,
        server: Server | None = None,
        asks: tuple[str, ...] = (THERE,),
        edge: dict[str, Any] | None = None,
        **cast: Any,
    ) -> LiveEdge:
        """Start an edge that sends from 127.0.0.1 to 127.0.0.2 and receives nothing. edge.

        Settings besides those of cast.
        """
        settings = self.net.machine(host, *asks, **{"receives": False, **cast})
        return await self._start(server or self._server, cast=settings, **(edge or {}))
