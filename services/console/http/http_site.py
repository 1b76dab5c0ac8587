"""The console's port: limits connections before TLS and HTTP, and closes those whose clients stop reading."""

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
CHECK_S = 1.0  # interval of the check for clients that do not read
ADOPT_S = 1.0  # for connections just accepted when the port closes


class HttpConnection(HttpHandler):
    """An HTTP connection that reports when it is closed, and knows how long its client has read nothing."""

    __slots__ = ("_acked", "_on_close", "_on_timeout", "_since", "_sock", "_transport")

    def __init__(
        self,
        server: web.Server,
        sock: socket.socket,
        idle_timeout_s: float,
        on_close: Callable[[], None],
        on_timeout: Callable[[], None],
        proxied: Callable[[str], None],
    ) -> None:
        super().__init__(server, proxied, idle_timeout_s)
        self._on_close: Callable[[], None] | None = on_close
        self._on_timeout: Callable[[], None] | None = on_timeout
        self._sock = sock
        # aiohttp drops its own as it closes, when data may still be unsent
        self._transport: asyncio.Transport | None = None
        self._acked = 0
        self._since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Report the closed connection."""
        super().connection_lost(exc)
        self.closed()

    def closed(self) -> None:
        """Report the closed connection, once."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()

    def unreadable(self, status: int, exc: BaseException | None) -> web.StreamResponse:
        """Return the response to a request that aiohttp cannot read."""
        return unreadable(status, exc)

    def reads_nothing(self, now: float, timeout_s: float) -> bool:
        """Return whether data are unacknowledged and the client has acknowledged nothing for so long."""
        try:
            acked, unacked = sockets.acked_mark(self._sock), sockets.unacked_bytes(self._sock)
        except (OSError, ValueError):  # closed
            return False
        if not unacked or acked != self._acked:
            self._since = now
        self._acked = acked
        return bool(unacked) and now - self._since > timeout_s

    def time_out(self) -> None:
        """Abort the connection because its client does not read; count it once."""
        on_timeout, self._on_timeout = self._on_timeout, None
        if on_timeout is not None:
            on_timeout()
        if self._transport is not None:
            self._transport.abort()


class HttpSite(web.BaseSite):
    """The console's listening socket, with limits of connections."""

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
        self._limits = ConnectionLimits((), settings.max_connections, settings.max_connections_per_address)
        self._refusals = Refusals(metrics.edge, listener)
        self._acceptor: Acceptor | None = None
        self._connections: set[HttpConnection] = set()
        self._adopting: set[asyncio.Task[None]] = set()
        self._checking: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """Return the listening address."""
        return str(Peer(*self._sock.getsockname()[:2]))

    async def start(self) -> None:
        """Start accepting connections."""
        await super().start()
        self._acceptor = Acceptor(self._sock, self._accepted)
        self._checking = asyncio.create_task(self._check(), name="console slow clients")

    async def stop(self) -> None:
        """Stop accepting connections; open ones stay."""
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        if self._adopting:
            await asyncio.wait(self._adopting, timeout=ADOPT_S)
        if self._checking is not None:
            self._checking.cancel()
        await super().stop()

    def _accepted(self, sock: socket.socket, host: str, port: int) -> None:
        peer = Peer(plain_address(host), port)
        if (reason := self._limits.admit(peer.address)) is not None:
            sock.close()
            self._refused(reason, peer)
            return
        connection = HttpConnection(
            self._handlers,
            sock,
            self._settings.idle_timeout_s,
            lambda: self._closed(connection, peer),
            lambda: self._metrics.count_refusal(Refusal.WRITE_TIMEOUT),
            lambda fault: self._refused(Refusal.PROXY_HEADER, peer, fault),
        )
        self._connections.add(connection)
        task = asyncio.create_task(self._adopt(sock, connection, peer), name="console connection")
        self._adopting.add(task)  # never cancelled: the socket would leak
        task.add_done_callback(self._adopting.discard)

    async def _adopt(self, sock: socket.socket, connection: HttpConnection, peer: Peer) -> None:
        """Hand the socket to the loop; from then on the transport closes it and notifies the connection."""
        within_s = HANDSHAKE_S if self._tls is not None else None
        try:
            sockets.configure(sock)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, sock, ssl=self._tls, ssl_handshake_timeout=within_s
            )
        except OSError:  # no TLS, too slow, or closed already
            sock.close()
            connection.closed()
            if self._tls is not None:
                self._refused(Refusal.TLS_HANDSHAKE, peer)

    def _closed(self, connection: HttpConnection, peer: Peer) -> None:
        self._connections.discard(connection)
        self._limits.release(peer.address)

    def _refused(self, reason: Refusal, peer: Peer, detail: str = "") -> None:
        self._metrics.count_refusal(reason)
        self._refusals.log(reason, peer, None, detail, asyncio.get_running_loop().time())

    async def _check(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(CHECK_S)
            self._refusals.tick(now())
            for connection in tuple(self._connections):
                if connection.reads_nothing(now(), self._settings.stream_timeout_s):
                    connection.time_out()
