"""One port of an edge: its settings, who may come in, and the connections that are in."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from services.kit import sockets
from services.kit.acceptor import Acceptor, bind
from services.kit.budget import Budget
from services.kit.connection import Connection
from services.kit.gate import Gate, Networks, plain_address
from services.kit.layers import MAX_SECONDS
from services.kit.metrics import Metrics, Traffic
from services.kit.refusals import Refusals
from services.kit.session import Peer, SessionFactory
from services.kit.tls import TlsFilter, TlsKeeper, TlsSettings
from services.kit.tls_transport import TlsTransport

log = logging.getLogger(__name__)

DRAIN_PAUSE_S = 0.01  # between two sessions at most, however long the drain may be spread
DRAIN_BATCH_S = 0.005  # the loop's timers are no finer than milliseconds


def _address(value: str) -> str:
    if value == "localhost":
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise ValueError("must be an IP address (0.0.0.0 or :: for all), or localhost") from None


BindAddress = Annotated[str, AfterValidator(_address)]


class ListenerSettings(BaseModel):
    """What may be said of one port."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: BindAddress = Field(default="127.0.0.1", description="address to bind; :: takes IPv4 too")
    port: int = Field(ge=0, le=65535, description="0: any free one")
    tls: TlsSettings | None = None
    allow: Networks = Field(default=(), description="networks that may connect; empty: all")
    max_connections: int = Field(default=10_000, ge=1)
    max_connections_per_address: int = Field(
        default=0, ge=0, description="0: no limit; IPv6 counts by /64; each worker counts its own"
    )
    handshake_timeout_s: float = Field(default=10.0, gt=0, le=MAX_SECONDS)
    write_timeout_s: float = Field(
        default=30.0, gt=0, le=MAX_SECONDS, description="output without progress: closed"
    )
    write_buffer_bytes: int = Field(default=256 << 10, ge=1 << 10, description="beyond it reading stops")
    backlog: int = Field(default=4096, ge=1, le=65_535)


OUTPUT_BYTES = 256 << 20  # held up in all, unless somebody says otherwise


class Listener:
    """Turns strangers away before a transport and a session exist for them; keeps the connections let in."""

    loop: asyncio.AbstractEventLoop

    def __init__(
        self,
        name: str,
        settings: ListenerSettings,
        factory: SessionFactory,
        budget: Budget,
        metrics: Metrics,
        reuse_port: bool = False,
        output: Budget | None = None,
    ) -> None:
        """Raises SettingsError if the TLS files are not usable."""
        self.name = name
        self.settings = settings
        self.factory = factory
        self.budget = budget
        self.output = output or Budget(OUTPUT_BYTES)
        self.traffic = Traffic()
        self.write_buffer_bytes = settings.write_buffer_bytes
        self.write_timeout_s = settings.write_timeout_s
        self.connections: set[Connection] = set()
        self._metrics = metrics
        self._gauge = metrics.connections.labels(metrics.edge, name)
        self._opened = metrics.opened.labels(metrics.edge, name)
        self._received = metrics.received_bytes.labels(metrics.edge, name)
        self._sent = metrics.sent_bytes.labels(metrics.edge, name)
        self._refusals = Refusals(metrics.edge, name)
        self._gate = Gate(settings.allow, settings.max_connections, settings.max_connections_per_address)
        self._tls = TlsKeeper(settings.tls) if settings.tls is not None else None
        self._reuse_port = reuse_port
        self._acceptor: Acceptor | None = None
        self._draining = False
        self._starting: set[asyncio.Task[object]] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    # Life

    async def start(self) -> tuple[str, int]:
        """Listen; returns the address bound. Raises SettingsError if it cannot be had."""
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time
        sock = bind(self.settings.host, self.settings.port, self._reuse_port)
        self._acceptor = Acceptor(sock, self.settings.backlog, self._accepted)
        host, port = self._acceptor.address
        fields = {"action": "listening", "edge": self._metrics.edge, "listener": self.name}
        log.info("listening on %s port %d", host, port, extra={**fields, "host": host, "port": port})
        return host, port

    def stop_accepting(self) -> None:
        """Close the listening socket; connections go on."""
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None

    async def drain(self, spread_s: float) -> None:
        """Ask every session to end; with many of them not at once, so that not all clients return at once."""
        self._draining = True
        waiting = list(self.connections)
        pause_s = min(spread_s / max(len(waiting), 1), DRAIN_PAUSE_S)
        owed_s = 0.0
        for connection in waiting:
            connection.drain()
            owed_s += pause_s
            if owed_s >= DRAIN_BATCH_S:
                await asyncio.sleep(owed_s)
                owed_s = 0.0

    async def closed(self, timeout_s: float) -> bool:
        """Wait until no connection is left; False if some still are."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    def abort_all(self) -> None:
        """Reset whatever is left."""
        for connection in list(self.connections):
            connection.abort()

    def tick(self, now: float) -> None:
        """Once a second, and before metrics are read: counters, held-back log lines, renewed certificates."""
        self._received.inc(self.traffic.received)
        self._sent.inc(self.traffic.sent)
        self.traffic.received = self.traffic.sent = 0
        self._refusals.tick(now)
        if self._tls is not None:
            self._tls.refresh()

    # Accepting

    def _accepted(self, sock: socket.socket, host: str, port: int) -> None:
        peer = Peer(plain_address(host), port)
        if (reason := self._gate.enter(peer.address)) is not None:
            sock.close()
            self.on_refusal(reason)
            self.log_refusal(reason, peer, None, "")
            return
        connection = Connection(self, sock, peer)
        self.connections.add(connection)
        self._empty.clear()
        self._opened.inc()
        self._gauge.inc()
        task = self.loop.create_task(self._adopt(connection, sock))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _adopt(self, connection: Connection, sock: socket.socket) -> None:
        """Give the socket to the loop; from then on the transport closes it and tells the connection so."""
        try:
            sockets.configure(sock)
            await self.loop.connect_accepted_socket(lambda: self._protocol(connection), sock)
        except OSError as error:  # gone already
            sock.close()
            connection.connection_lost(error)

    def _protocol(self, connection: Connection) -> asyncio.Protocol:
        if self._tls is None:
            return connection
        tls = TlsFilter(self._tls.context)
        return TlsTransport(self, connection, tls, self.settings.handshake_timeout_s)

    # `Host`: what connections tell

    def on_open(self, connection: Connection) -> None:
        if self._draining:
            self.loop.call_soon(connection.drain)

    def on_gone(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._gate.leave(connection.peer.address)
        self._gauge.dec()
        if not self.connections:
            self._empty.set()

    def on_refusal(self, reason: str) -> None:
        self._metrics.count_refusal(reason)

    def log_refusal(self, reason: str, peer: Peer, conn: str | None, detail: str) -> None:
        self._refusals.log(reason, peer, conn, detail, self.now())

    def on_local_error(self) -> None:
        self._metrics.local_errors.inc()
