"""The connections of one name, accepted or dialled: what each of them needs around it, and how all of them end."""

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

DRAIN_PAUSE_S = 0.01  # between two sessions at most, however long the drain may be spread
DRAIN_BATCH_S = 0.005  # the loop's timers are no finer than milliseconds


class Connections:
    """A `Host`: counts its connections and their bytes, keeps them until they are gone, ends them when it is asked."""

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
        """name: the label `listener` of its metrics and log lines. tls: without, plain TCP."""
        self.name = name
        self.make_session = make_session
        self.budget = budget
        self.output = output
        self.traffic = Traffic()
        metrics.traffics.append(self.traffic)
        self.write_buffer_bytes = write_buffer_bytes
        self.write_timeout_s = write_timeout_s
        self.connections: dict[Connection, None] = {}  # in the order in which they were made
        self.address: str | None = None  # where it listens
        self._metrics = metrics
        self._gauge = metrics.connections.labels(metrics.edge, name)
        self._opened = metrics.opened.labels(metrics.edge, name)
        self._received = metrics.received_bytes.labels(metrics.edge, name)
        self._sent = metrics.sent_bytes.labels(metrics.edge, name)
        self._refusals = Refusals(metrics.edge, name)
        self._tls = tls
        self._tell_certificate()
        self._draining = False
        self._starting: set[asyncio.Task[object]] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    # Life

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
        received, sent = self.traffic.since()
        self._received.inc(received)
        self._sent.inc(sent)
        self._refusals.tick(now)
        if self._tls is not None:
            self._tls.refresh()
            self._tell_certificate()

    def _tell_certificate(self) -> None:
        if self._tls is not None and self._tls.not_after is not None:
            self._metrics.certificates.labels(self._metrics.edge, self.name).set(self._tls.not_after)

    # A new one

    def _add(
        self, sock: socket.socket, peer: Peer, tls: TlsFilter | None, handshake_timeout_s: float
    ) -> Connection:
        """A connection of a connected socket; its session is made when it is open, with TLS after the handshake."""
        connection = Connection(self, sock, peer)
        self.connections[connection] = None
        self._empty.clear()
        self._opened.inc()
        self.traffic.opened += 1
        self.traffic.open += 1
        self._gauge.inc()
        protocol = connection if tls is None else TlsTransport(self, connection, tls, handshake_timeout_s)
        # A task, which nobody cancels: half given to the loop, a socket would be neither ours nor the loop's.
        task = self.loop.create_task(self._adopt(connection, sock, protocol))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        return connection

    async def _adopt(self, connection: Connection, sock: socket.socket, protocol: asyncio.Protocol) -> None:
        """Give the socket to the loop; from then on the transport closes it and tells the connection so."""
        try:
            sockets.configure(sock)
            await self.loop.connect_accepted_socket(lambda: protocol, sock)
        except OSError as error:  # gone already
            sock.close()
            connection.connection_lost(error)

    # `Host`: what connections ask and tell

    def on_open(self, connection: Connection) -> None:
        if self._draining:
            self.loop.call_soon(connection.drain)

    def on_gone(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        self._gauge.dec()
        self.traffic.open -= 1
        if not self.connections:
            self._empty.set()

    def on_refusal(self, reason: str) -> None:
        self._metrics.count_refusal(reason)

    def log_refusal(self, reason: str, peer: Peer, conn: str | None, detail: str) -> None:
        self._refusals.log(reason, peer, conn, detail, self.now())

    def on_local_error(self) -> None:
        self._metrics.local_errors.inc()
