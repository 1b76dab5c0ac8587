"""Open connections to other systems. Their sessions and their drain are as those of accepted connections."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from services.kit.config.layers import MAX_SECONDS
from services.kit.dns.tcp_connect import open_tcp
from services.kit.metrics.metrics import Metrics
from services.kit.net.budget import Budget
from services.kit.net.connection import Connection
from services.kit.net.connection_limits import plain_address
from services.kit.net.connections import Connections
from services.kit.net.tls import ClientTls, ReloadableTlsContext, TlsFilter
from services.kit.session.session import Peer, Session, SessionFactory, Wire

__all__ = ["ClientTls", "DialSettings", "Dialler"]


class DialSettings(BaseModel):
    """How connections to others are opened."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tls: ClientTls | None = None
    connect_timeout_s: float = Field(
        default=5.0,
        gt=0,
        le=MAX_SECONDS,
        description="to resolve the name and connect to one of its addresses",
    )
    handshake_timeout_s: float = Field(default=10.0, gt=0, le=MAX_SECONDS)
    write_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=MAX_SECONDS,
        description="close the connection after output without progress for this long",
    )
    write_buffer_bytes: int = Field(default=256 << 10, ge=1 << 10, description="beyond it, no input is read")


@dataclass(slots=True)
class Attempt:
    """A connection that is not open yet. Its outcome goes to `opened`."""

    where: str  # host and port, for messages
    factory: SessionFactory
    opened: asyncio.Future[Connection]
    connection: Connection | None = None  # once TCP is connected

    def fail(self, error: OSError) -> None:
        """Set the error, unless the outcome is known already."""
        if not self.opened.done():
            self.opened.set_exception(error)


class Dialler(Connections):
    """Opens connections for an edge, in the loop that runs when it is made."""

    def __init__(
        self, name: str, settings: DialSettings, budget: Budget, metrics: Metrics, output: Budget
    ) -> None:
        """Read the TLS files. Raises SettingsError if they are unusable."""
        super().__init__(
            name,
            metrics,
            budget,
            output,
            write_buffer_bytes=settings.write_buffer_bytes,
            write_timeout_s=settings.write_timeout_s,
            tls=None if settings.tls is None else ReloadableTlsContext(settings.tls, f"dial.tls of {name}"),
            make_session=self._make_session,
        )
        self.settings = settings
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time
        self._dialling: dict[asyncio.Task[None], Attempt] = {}  # not connected yet
        self._attempts: dict[
            str, Attempt
        ] = {}  # connected but not open yet, by the connection's name in logs
        self._stopped = False

    async def connect(self, host: str, port: int, factory: SessionFactory) -> Connection:
        """Open a connection; its session may have been called already when this returns.

        The name is resolved each time. Raises OSError (ConnectionError, TimeoutError) with the cause. With TLS 1.3 a
        server rejects our certificate only after this returns: then the session is lost.
        """
        attempt = Attempt(_shown(host, port), factory, self.loop.create_future())
        if self._stopped:
            raise _stopping(attempt)
        dialling = self.loop.create_task(self._dial(attempt, host, port))
        self._dialling[dialling] = attempt
        dialling.add_done_callback(self._dialling.pop)
        try:
            return await attempt.opened
        except asyncio.CancelledError:
            dialling.cancel()
            if attempt.connection is not None:
                attempt.connection.abort()
            raise

    def stop_opening(self) -> None:
        """Fail pending and later `connect` calls with ConnectionError. Handshakes are left to the drain."""
        self._stopped = True
        for dialling, attempt in self._dialling.items():
            dialling.cancel()
            attempt.fail(_stopping(attempt))

    async def _dial(self, attempt: Attempt, host: str, port: int) -> None:
        try:
            tls = self._filter(host)
            sock, address = await open_tcp(host, port, self.settings.connect_timeout_s)
        except (OSError, ValueError) as error:
            kind = type(error) if isinstance(error, TimeoutError) else ConnectionError
            attempt.fail(kind(f"{attempt.where}: {error}"))
            return
        peer = Peer(plain_address(address), port)
        attempt.connection = self._add(sock, peer, tls, self.settings.handshake_timeout_s)
        self._attempts[attempt.connection.conn] = attempt

    def _filter(self, host: str) -> TlsFilter | None:
        """Return the TLS state of a new connection. Raises ValueError for a name that no certificate can have."""
        if self._tls is None or self.settings.tls is None:
            return None
        return TlsFilter(self._tls.context, self.settings.tls.server_name or host)

    # Methods of `Host`

    def _make_session(self, wire: Wire) -> Session:
        attempt = self._attempts[wire.conn]
        try:
            return attempt.factory(wire)
        except Exception as error:
            attempt.fail(ConnectionError(f"{attempt.where}: internal error in the session: {error!r}"))
            raise

    def on_open(self, connection: Connection) -> None:
        """Complete the attempt."""
        attempt = self._attempts.pop(connection.conn)
        if not attempt.opened.done():
            attempt.opened.set_result(connection)
        super().on_open(connection)

    def log_refusal(self, reason: str, peer: Peer, conn: str | None, detail: str) -> None:
        """Log a refusal. Before the connection is open, it also fails the attempt."""
        super().log_refusal(reason, peer, conn, detail)
        if (attempt := self._attempts.get(conn or "")) is not None:
            attempt.fail(ConnectionError(f"{attempt.where}: {reason}: {detail}"))

    def on_lost(self, connection: Connection) -> None:
        """Forget the connection; fail its attempt if it was not open yet."""
        super().on_lost(connection)
        if (attempt := self._attempts.pop(connection.conn, None)) is not None:
            attempt.fail(ConnectionError(f"{attempt.where}: closed before it was open"))


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _stopping(attempt: Attempt) -> ConnectionError:
    return ConnectionAbortedError(f"{attempt.where}: not dialled, this process is shutting down")
