"""One connection: the shell between an event loop's transport and a session.

Everything here runs in loop callbacks. There is no task per connection, one timer, and few fields: thousands of
idle connections have to be cheap.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from itertools import count
from typing import Any, cast

from protos.types import PeerError
from services.kit.net import sockets
from services.kit.net.alarm import MIN_DELAY_S
from services.kit.net.connection_limits import plain_address
from services.kit.net.host import NO_SESSION, Host
from services.kit.net.proxy_header import proxy_fault, proxy_version
from services.kit.net.refusals import Refusal
from services.kit.net.stream import Phase, Stream
from services.kit.net.tls_hello import TLS_FAULT, begins_tls
from services.kit.session.session import Peer

log = logging.getLogger(__name__)

_numbers = count(1)


class Connection(Stream):
    """An asyncio protocol towards the loop, a `Wire` towards its session."""

    __slots__ = (
        "_begins_tls",
        "_held",
        "_logged",
        "_postponed",
        "_session",
        "began",
        "name",
        "number",
        "peer",
        "received",
    )

    def __init__(self, host: Host[Connection], sock: socket.socket, peer: Peer) -> None:
        super().__init__(host, sock)
        self.peer = peer
        self.name: str | None = None  # what the peer says it is, once it has
        self.began = host.now()
        self.received = 0  # octets
        self._session = NO_SESSION
        self.number = next(_numbers)
        self._held = 0  # bytes of the session's unfinished input, as the budget knows it
        self._postponed = 0.0  # the deadline that unread bytes have put off, once
        self._begins_tls = False  # what came first was a ClientHello
        self._logged: set[str] | None = None  # reasons of refusals that are in the log already

    def name_peer(self, name: str) -> None:
        self.name = name

    # What the loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A plain connection is open at once; TLS calls `attach`, and `open` after its handshake."""
        self.attach(cast(asyncio.Transport, transport))
        self.open(self.peer)

    def open(self, peer: Peer) -> None:
        if self._phase is not Phase.OPENING:
            return
        self.peer = peer
        self._phase = Phase.OPEN
        try:
            self._session = self._host.make_session(self)
        except Exception as error:  # noqa: BLE001
            self._failed(error)
        self._host.on_open(self)
        self._look(self._host.now())

    def data_received(self, data: bytes) -> None:
        host = self._host
        octets = len(data)
        self.received += octets
        host.traffic.received += octets
        if self.received == octets:  # also if the session closed before anything came
            if (version := proxy_version(data)) is not None:
                self.refuse(Refusal.PROXY_HEADER, proxy_fault(version))
                self.close()
                return
            self._begins_tls = begins_tls(data)
        if self._phase is not Phase.OPEN:
            return
        now = host.now()
        try:
            self._session.received(data, now)
        except Exception as error:  # noqa: BLE001
            self._failed(error)
        self._look(now)

    def eof_received(self) -> bool:
        """True keeps the transport open for writing: how to end is the session's decision."""
        if not self.peer_ended:
            self.peer_ended = True
            if self._phase is Phase.OPEN:
                self._call(self._session.eof, self._host.now())
            else:
                self._transport.close()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if self._phase is Phase.GONE:
            return
        # Once both sides have sent FIN, the state of the socket does not tell an orderly end from a reset.
        reset = exc is not None or self._reset or (self._phase is Phase.OPEN and self.is_reset())
        self._phase = Phase.GONE
        self._alarm.cancel()
        self._unwatch()
        self._host.budget.hold(self, 0)
        session, self._session = self._session, NO_SESSION
        self._call(session.lost, reset)
        self._host.on_gone(self)

    # What `Wire` promises, beside the stream

    @property
    def local(self) -> tuple[str, int] | None:
        try:
            host, port = self._sock.getsockname()[:2]
        except OSError:
            return None
        return plain_address(host), port

    @property
    def conn(self) -> str:
        return f"{os.getpid():x}.{self.number}"

    @property
    def held(self) -> int:
        """Bytes of its unfinished input."""
        return self._held

    @property
    def age_ms(self) -> int:
        """Since it was accepted, or somebody answered."""
        return round((self._host.now() - self.began) * 1000)

    def abort(self) -> None:
        self._host.budget.hold(self, 0)
        super().abort()

    def reschedule(self) -> None:
        self._look(self._host.now())

    def refuse(self, reason: str, detail: str = "") -> None:
        if self._begins_tls and not isinstance(reason, Refusal):  # the session took TLS for its own protocol
            reason, detail = Refusal.TLS_AT_A_PLAIN_PORT, TLS_FAULT
        self._host.on_refusal(reason)
        if self._logged is None:
            self._logged = set()
        if reason not in self._logged:
            self._logged.add(reason)
            self._host.log_refusal(reason, self.peer, self.conn, detail)

    # What the listener and the budget ask for

    def drain(self) -> None:
        if self._phase is Phase.OPEN:
            self._call(self._session.drain)
        elif self._phase is Phase.OPENING:
            self.abort()

    def evict(self) -> None:
        self.refuse(Refusal.INPUT_BUDGET, f"held {self._held} bytes")
        self.abort()

    # Inside

    def _call(self, method: Callable[..., None], *arguments: Any) -> None:
        try:
            method(*arguments)
        except Exception as error:  # noqa: BLE001
            self._failed(error)
        self._look(self._host.now())

    def _failed(self, error: Exception) -> None:
        """Whose fault was it? The peer's: refuse and close. Ours: traceback, and this connection only."""
        if isinstance(error, PeerError):
            self.refuse(error.reason, error.detail)
            self.close()
            return
        fields = {"action": "session_failed", "conn": self.conn, "peer": str(self.peer)}
        log.error("session failed: %r", error, exc_info=error, extra=fields)
        self._host.on_local_error()
        self.abort()

    def _look(self, now: float) -> None:
        """The session had its say: what does it hold, and when does it want to be called?"""
        if self._phase is not Phase.OPEN:
            return
        session = self._session
        held = session.buffered
        if held != self._held:
            self._held = held
            self._host.budget.hold(self, held)
        if held and not self.peer_ended:
            sockets.acknowledge(self._sock)  # the peer owes us the rest of something
        due = session.deadline()
        if due is not None and (self.peer_ended or not self._holds):
            self._alarm.set(due, now)

    def _on_released(self) -> None:
        self._call(self._session.resumed, self._host.now())

    def _on_output_budget(self) -> None:
        self._unwatch()
        self.refuse(Refusal.OUTPUT_BUDGET)
        self.abort()

    def _on_stalled(self) -> None:
        self.refuse(Refusal.WRITE_TIMEOUT)
        self.abort()

    def _on_alarm(self) -> None:
        if self._phase is Phase.OPEN:
            self._check_deadline(self._host.now())
        super()._on_alarm()

    def _check_deadline(self, now: float) -> None:
        due = self._session.deadline()
        if due is None or (self._holds and not self.peer_ended):
            return
        if now < due:
            self._alarm.set(due, now)
        elif not self.peer_ended and self._postponed != due and sockets.unread_bytes(self._sock):
            # Not the peer was silent but our loop: read first. Only once, or a steady sender is never late.
            self._postponed = due
            self._alarm.set(now + MIN_DELAY_S, now)
        else:
            self._call(self._session.on_time, now)
