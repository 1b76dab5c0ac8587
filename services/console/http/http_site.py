"""The console's port: who connects is counted before TLS and HTTP exist for him, as no token was seen by then, and is
let go when he only holds the line."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import cast

from aiohttp import web

from services.console.http.unreadable_requests import unreadable
from services.console.settings import ConsoleSettings
from services.kit.metrics import Metrics
from services.kit.net import Acceptor, ConnectionLimits, Refusal, Refusals, plain_address, sockets
from services.kit.process import HttpHandler
from services.kit.session import Peer

HANDSHAKE_S = 10.0
LOOK_S = 1.0  # for who takes nothing of what he is sent
ADOPTED_S = 1.0  # who was just accepted when the port closes is let in


class Visitor(HttpHandler):
    """aiohttp's end of a connection, which says when it is over, and knows since when nothing was taken."""

    __slots__ = ("_acked", "_goes", "_line", "_since", "_slow", "_sock")

    def __init__(
        self,
        server: web.Server,
        sock: socket.socket,
        idle_timeout_s: float,
        goes: Callable[[], None],
        slow: Callable[[], None],
        proxied: Callable[[str], None],
    ) -> None:
        super().__init__(server, proxied, idle_timeout_s)
        self._goes: Callable[[], None] | None = goes
        self._slow: Callable[[], None] | None = slow
        self._sock = sock
        self._line: asyncio.Transport | None = (
            None  # aiohttp forgets its own as it closes, when all may not have gone
        )
        self._acked = 0
        self._since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._line = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self.leave()

    def leave(self) -> None:
        """Once is enough."""
        goes, self._goes = self._goes, None
        if goes is not None:
            goes()

    def unreadable(self, status: int, exc: BaseException | None) -> web.StreamResponse:
        """Return a problem, as all answers to errors are."""
        return unreadable(status, exc)

    def takes_nothing(self, now: float, timeout_s: float) -> bool:
        """Whether nothing of what is on its way to him has gone for so long."""
        try:
            acked, waits = sockets.acked_mark(self._sock), sockets.unacked_bytes(self._sock)
        except (OSError, ValueError):  # it is closed
            return False
        if not waits or acked != self._acked:
            self._since = now
        self._acked = acked
        return bool(waits) and now - self._since > timeout_s

    def let_go(self) -> None:
        """For taking nothing; once is told. What he has not taken is not sent."""
        slow, self._slow = self._slow, None
        if slow is not None:
            slow()
        if self._line is not None:
            self._line.abort()


class Door(web.BaseSite):
    def __init__(
        self,
        runner: web.AppRunner,
        sock: socket.socket,
        settings: ConsoleSettings,
        tls: ssl.SSLContext | None,
        metrics: Metrics,
        listener: str,
    ) -> None:
        super().__init__(runner, ssl_context=tls)
        assert isinstance(runner.server, web.Server)
        self._handlers = runner.server
        self._sock = sock
        self._settings = settings
        self._tls = tls
        self._metrics = metrics
        self._gate = ConnectionLimits((), settings.max_connections, settings.max_connections_per_address)
        self._refusals = Refusals(metrics.edge, listener)
        self._acceptor: Acceptor | None = None
        self._inside: set[Visitor] = set()
        self._coming: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return str(Peer(*self._sock.getsockname()[:2]))

    async def start(self) -> None:
        await super().start()
        self._acceptor = Acceptor(self._sock, self._accepted)
        self._watching = asyncio.create_task(self._watch(), name="console door")

    async def stop(self) -> None:
        """Who is in stays; nobody else is let in."""
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        if self._coming:
            await asyncio.wait(self._coming, timeout=ADOPTED_S)
        if self._watching is not None:
            self._watching.cancel()
        await super().stop()

    def _accepted(self, sock: socket.socket, host: str, port: int) -> None:
        peer = Peer(plain_address(host), port)
        if (reason := self._gate.admit(peer.address)) is not None:
            sock.close()
            self._refused(reason, peer)
            return
        visitor = Visitor(
            self._handlers,
            sock,
            self._settings.idle_timeout_s,
            lambda: self._gone(visitor, peer),
            lambda: self._metrics.count_refusal(Refusal.WRITE_TIMEOUT),
            lambda fault: self._refused(Refusal.PROXY_HEADER, peer, fault),
        )
        self._inside.add(visitor)
        task = asyncio.create_task(self._adopt(sock, visitor, peer), name="console connection")
        self._coming.add(task)  # nobody cancels it: half given to the loop, a socket would be neither's
        task.add_done_callback(self._coming.discard)

    async def _adopt(self, sock: socket.socket, visitor: Visitor, peer: Peer) -> None:
        """Gives the socket to the loop; from then on the transport closes it, and tells the visitor so."""
        within_s = HANDSHAKE_S if self._tls is not None else None
        try:
            sockets.configure(sock)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: visitor, sock, ssl=self._tls, ssl_handshake_timeout=within_s
            )
        except OSError:  # no TLS, not in time, or gone already
            sock.close()
            visitor.leave()
            if self._tls is not None:
                self._refused(Refusal.TLS_HANDSHAKE, peer)

    def _gone(self, visitor: Visitor, peer: Peer) -> None:
        self._inside.discard(visitor)
        self._gate.release(peer.address)

    def _refused(self, reason: Refusal, peer: Peer, detail: str = "") -> None:
        self._metrics.count_refusal(reason)
        self._refusals.log(reason, peer, None, detail, asyncio.get_running_loop().time())

    async def _watch(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(LOOK_S)
            self._refusals.tick(now())
            for visitor in tuple(self._inside):
                if visitor.takes_nothing(now(), self._settings.stream_timeout_s):
                    visitor.let_go()
