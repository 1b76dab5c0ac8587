"""Keep the connections of one listener or dialler: count them, and end them on a drain."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from services.kit.metrics.metrics import Metrics, Traffic
from services.kit.net import sockets
from services.kit.net.budget import Budget
from services.kit.net.connection import Connection
from services.kit.net.refusals import Refusals
from services.kit.net.tls import ReloadableTlsContext, TlsFilter
from services.kit.net.tls_transport import TlsTransport
from services.kit.session.session import Peer, SessionFactory

DRAIN_PAUSE_S = 0.01  # maximum between two sessions, however long the drain may take
DRAIN_BATCH_S = 0.005  # sleep this long at a time: the loop's timers have milliseconds


class Connections:
    """A `Host`: keeps its connections until they are lost, counts them and their bytes, and ends them."""

    loop: asyncio.AbstractEventLoop
    now: Callable[[], float]

    def __init__(
        self,
        name: str,
        metrics: Metrics,
        budget: Budget,
        output: Budget,
        *,
        write_buffer_bytes: int,
        write_timeout_s: float,
        tls: ReloadableTlsContext | None,
        make_session: SessionFactory,
    ) -> None:
        """Take the label `listener` of metrics and log lines as `name`; without `tls`, connections are plain TCP."""
        self.name = name
        self.make_session = make_session
        self.budget = budget
        self.output = output
        self.traffic = Traffic()
        metrics.traffics.append(self.traffic)
        self.write_buffer_bytes = write_buffer_bytes
        self.write_timeout_s = write_timeout_s
        self.connections: dict[Connection, None] = {}  # in order of creation
        self.address: str | None = None  # of a listener, as text
        self._metrics = metrics
        self._gauge = metrics.connections.labels(metrics.edge, name)
        self._opened = metrics.opened.labels(metrics.edge, name)
        self._received = metrics.received_bytes.labels(metrics.edge, name)
        self._sent = metrics.sent_bytes.labels(metrics.edge, name)
        self._refusals = Refusals(metrics.edge, name)
        self._tls = tls
        self._publish_expiry()
        self._draining = False
        self._starting: set[asyncio.Task[object]] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    # Lifecycle

    async def drain(self, spread_s: float) -> None:
        """Ask every session to end, spread over up to `spread_s`, so that clients do not all reconnect at once."""
        self._draining = True
        connections = list(self.connections)
        pause_s = min(spread_s / max(len(connections), 1), DRAIN_PAUSE_S)
        owed_s = 0.0
        for connection in connections:
            connection.drain()
            owed_s += pause_s
            if owed_s >= DRAIN_BATCH_S:
                await asyncio.sleep(owed_s)
                owed_s = 0.0

    async def closed(self, timeout_s: float) -> bool:
        """Wait until no connection is left. Return False if some remain after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    def abort_all(self) -> None:
        """Reset all remaining connections."""
        for connection in list(self.connections):
            connection.abort()

    def tick(self, now: float) -> None:
        """Update counters, log suppressed lines, reload renewed certificates: once a second and before a scrape."""
        received, sent = self.traffic.since()
        self._received.inc(received)
        self._sent.inc(sent)
        self._refusals.tick(now)
        if self._tls is not None:
            self._tls.refresh()
            self._publish_expiry()

    def _publish_expiry(self) -> None:
        if self._tls is not None and self._tls.not_after is not None:
            self._metrics.certificates.labels(self._metrics.edge, self.name).set(self._tls.not_after)

    # New connections

    def _add(
        self, sock: socket.socket, peer: Peer, tls: TlsFilter | None, handshake_timeout_s: float
    ) -> Connection:
        """Return the connection of a connected socket. It opens, and makes its session, after a TLS handshake."""
        connection = Connection(self, sock, peer)
        self.connections[connection] = None
        self._empty.clear()
        self._opened.inc()
        self.traffic.opened += 1
        self.traffic.open += 1
        self._gauge.inc()
        protocol = connection if tls is None else TlsTransport(self, connection, tls, handshake_timeout_s)
        # A task that is never cancelled: cancelled halfway, the socket would belong neither to us nor to the loop.
        task = self.loop.create_task(self._adopt(connection, sock, protocol))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        return connection

    async def _adopt(self, connection: Connection, sock: socket.socket, protocol: asyncio.Protocol) -> None:
        """Hand the socket to the loop, whose transport closes it and tells the connection."""
        try:
            sockets.configure(sock)
            await self.loop.connect_accepted_socket(lambda: protocol, sock)
        except OSError as error:  # it has ended already
            sock.close()
            connection.connection_lost(error)

    # Methods of `Host`

    def on_open(self, connection: Connection) -> None:
        """Drain a connection that opens during the drain."""
        if self._draining:
            self.loop.call_soon(connection.drain)

    def on_lost(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self.connections.pop(connection, None)
        self._gauge.dec()
        self.traffic.open -= 1
        if not self.connections:
            self._empty.set()

    def on_refusal(self, reason: str) -> None:
        """Count a refusal."""
        self._metrics.count_refusal(reason)

    def log_refusal(self, reason: str, peer: Peer, conn: str | None, detail: str) -> None:
        """Log a refusal, rate-limited."""
        self._refusals.log(reason, peer, conn, detail, self.now())

    def on_local_error(self) -> None:
        """Count an internal error."""
        self._metrics.local_errors.inc()
