"""Listen on one port of an edge, and admit connections within its limits."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from services.kit.config.layers import MAX_SECONDS, SettingPath
from services.kit.metrics.metrics import Metrics
from services.kit.net.acceptor import Acceptor, open_listening
from services.kit.net.budget import Budget
from services.kit.net.connection import Connection
from services.kit.net.connection_limits import ConnectionLimits, Networks, plain_address
from services.kit.net.connections import Connections
from services.kit.net.refusals import Refusal
from services.kit.net.tls import ReloadableTlsContext, TlsFilter, TlsSettings
from services.kit.session.session import Peer, SessionFactory

log = logging.getLogger(__name__)


def _address(value: str) -> str:
    if value == "localhost":
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise ValueError("must be an IP address (0.0.0.0 or :: for all), or localhost") from None


BindAddress = Annotated[str, AfterValidator(_address)]


class ListenerSettings(BaseModel):
    """Settings of one port."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: BindAddress = Field(default="127.0.0.1", description="address to bind; :: accepts IPv4 too")
    port: int = Field(ge=0, le=65535, description="0: any free port")
    tls: TlsSettings | None = None
    allow: Networks = Field(default=(), description="networks that may connect; empty: all")
    max_connections: int = Field(default=10_000, ge=1)
    max_connections_per_address: int = Field(
        default=0, ge=0, description="0: no limit; IPv6 counts by /64; each worker counts its own"
    )
    handshake_timeout_s: float = Field(default=10.0, gt=0, le=MAX_SECONDS)
    write_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=MAX_SECONDS,
        description="close the connection after output without progress for this long",
    )
    write_buffer_bytes: int = Field(default=256 << 10, ge=1 << 10, description="beyond it, no input is read")
    backlog: int = Field(default=4096, ge=1, le=65_535)


def port_setting(edge: str, listener: str) -> SettingPath:
    """Return the setting of a listener's port."""
    return "edges", edge, "listeners", listener, "port"


OUTPUT_BYTES = 256 << 20  # default limit of unread output


class Listener(Connections):
    """A listening port. Connections beyond its limits are refused before they get a transport and a session."""

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
        """Read the TLS files. Raises SettingsError if they are unusable."""
        super().__init__(
            name,
            metrics,
            budget,
            output or Budget(OUTPUT_BYTES),
            write_buffer_bytes=settings.write_buffer_bytes,
            write_timeout_s=settings.write_timeout_s,
            tls=None
            if settings.tls is None
            else ReloadableTlsContext(settings.tls, f"tls of listener {name}"),
            make_session=factory,
        )
        self.settings = settings
        self._limits = ConnectionLimits(
            settings.allow, settings.max_connections, settings.max_connections_per_address
        )
        self._reuse_port = reuse_port
        self._acceptor: Acceptor | None = None

    async def start(self) -> tuple[str, int]:
        """Listen; return the bound host and port. Raises SettingsError if the address is not available."""
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time
        settings, setting = self.settings, port_setting(self._metrics.edge, self.name)
        sock = open_listening(settings.host, settings.port, setting, settings.backlog, self._reuse_port)
        self._acceptor = Acceptor(sock, self._accepted, lambda: self.on_refusal(Refusal.NO_DESCRIPTORS))
        host, port = self._acceptor.address
        self.address = str(Peer(host, port))
        fields = {"action": "listening", "edge": self._metrics.edge, "listener": self.name}
        place = {"host": host, "port": port, "setting": setting}
        log.info("listening on %s port %d", host, port, extra={**fields, **place})
        return host, port

    def stop_accepting(self) -> None:
        """Close the listening socket; connections stay open."""
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None

    stop_opening = stop_accepting

    def _accepted(self, sock: socket.socket, host: str, port: int) -> None:
        peer = Peer(plain_address(host), port)
        if (reason := self._limits.admit(peer.address)) is not None:
            sock.close()
            self.on_refusal(reason)
            self.log_refusal(reason, peer, None, "")
            return
        tls = TlsFilter(self._tls.context) if self._tls is not None else None
        self._add(sock, peer, tls, self.settings.handshake_timeout_s)

    def on_lost(self, connection: Connection) -> None:
        """Forget a connection that has ended, and make room for another."""
        self._limits.release(connection.peer.address)
        super().on_lost(connection)
