"""Connect an event loop's transport to a protocol session.

Everything here runs in loop callbacks. A connection has no task of its own, one timer and few fields, so that thousands
of idle connections are cheap.
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
from services.kit.net.alarm import MIN_DELAY_S, Alarm
from services.kit.net.connection_limits import plain_address
from services.kit.net.host import NO_SESSION, Host
from services.kit.net.proxy_header import proxy_fault, proxy_version
from services.kit.net.refusals import Refusal
from services.kit.net.stream import HELD_BY_OUTPUT, HELD_BY_SESSION, Phase, Stream
from services.kit.net.tls_hello import TLS_FAULT, begins_tls
from services.kit.session.session import Peer

log = logging.getLogger(__name__)

_numbers = count(1)


class Connection(Stream):
    """An asyncio protocol for the loop, and a `Wire` for its session."""

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
        super().__init__(host, sock, Alarm(host.loop, self._on_alarm))
        self.peer = peer
        self.name: str | None = None  # as the peer names itself
        self.began = host.now()
        self.received = 0  # octets
        self._session = NO_SESSION
        self.number = next(_numbers)
        self._held = 0  # bytes of unfinished input, as reported to the budget
        self._postponed = 0.0  # the deadline that was postponed once because of unread bytes
        self._begins_tls = False  # the input begins with a ClientHello
        self._logged: set[str] | None = None  # reasons of refusals that have been logged

    # Called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open a plain connection at once. TLS calls `attach` instead, and `open` after its handshake."""
        self.attach(cast(asyncio.Transport, transport))
        self.open(self.peer)

    def open(self, peer: Peer) -> None:
        """Make the session; `peer` has the certificate's names if there was a TLS handshake."""
        if self._phase is not Phase.OPENING:
            return
        self.peer = peer
        self._phase = Phase.OPEN
        try:
            self._session = self._host.make_session(self)
        except Exception as error:  # noqa: BLE001
            self._fail(error)
        self._host.on_open(self)
        self._update(self._host.now())

    def data_received(self, data: bytes) -> None:
        """Pass input to the session; refuse a PROXY protocol header."""
        host = self._host
        octets = len(data)
        self.received += octets
        host.traffic.received += octets
        if self.received == octets:  # first input; the session may have closed before it
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
            self._fail(error)
        self._update(now)

    def eof_received(self) -> bool:
        """Return True to keep the transport open for writing: the session decides when to close."""
        if not self.peer_ended:
            self.peer_ended = True
            if self._phase is Phase.OPEN:
                self._call(self._session.eof, self._host.now())
            else:
                self._transport.close()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the session and the host that the connection has ended."""
        if self._phase is Phase.CLOSED:
            return
        # Once both sides have sent FIN, the socket's state no longer shows whether a reset followed.
        reset = exc is not None or self._reset or (self._phase is Phase.OPEN and self.is_reset())
        self._phase = Phase.CLOSED
        self._alarm.cancel()
        self._watch = None
        self._host.output.hold(self.evict_output, 0)
        self._host.budget.hold(self.evict, 0)
        session, self._session = self._session, NO_SESSION
        self._call(session.lost, reset)
        self._host.on_lost(self)

    def pause_writing(self) -> None:
        """Stop reading, and count the output that is held up, until the peer reads on."""
        self._hold(HELD_BY_OUTPUT)
        if self._phase is Phase.OPEN:
            self._watch_output()
            self._host.output.hold(self.evict_output, self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Resume reading: the peer reads again."""
        if self._phase is Phase.OPEN:
            self._watch = None
            self._host.output.hold(self.evict_output, 0)
        if self._release(HELD_BY_OUTPUT):
            self._call(self._session.resumed, self._host.now())

    # Methods of `Wire`, beside those of the stream

    @property
    def local(self) -> tuple[str, int] | None:
        """Return our own address and port, or None if the socket is closed."""
        try:
            host, port = self._sock.getsockname()[:2]
        except OSError:
            return None
        return plain_address(host), port

    @property
    def conn(self) -> str:
        """Return the connection's name in logs, unique on this machine."""
        return f"{os.getpid():x}.{self.number}"

    @property
    def held(self) -> int:
        """Return the bytes of unfinished input."""
        return self._held

    @property
    def age_ms(self) -> int:
        """Return the milliseconds since the connection was established."""
        return round((self._host.now() - self.began) * 1000)

    def name_peer(self, name: str) -> None:
        """Set the name that the peer gave itself, for listings."""
        self.name = name

    def resume(self) -> None:
        """End the session's own pause."""
        if self._release(HELD_BY_SESSION):
            self._call(self._session.resumed, self._host.now())

    def close(self) -> None:
        """Flush, send FIN and discard input; the output no longer counts against the budget."""
        super().close()
        self._host.output.hold(self.evict_output, 0)

    def abort(self) -> None:
        """Reset the connection; unsent output is lost."""
        self._host.budget.hold(self.evict, 0)
        super().abort()

    def reschedule(self) -> None:
        """Read the session's deadline and buffered bytes again."""
        self._update(self._host.now())

    def refuse(self, reason: str, detail: str = "") -> None:
        """Count a refusal, and log the first one of each reason."""
        if self._begins_tls and not isinstance(reason, Refusal):  # the session parsed TLS as its own protocol
            reason, detail = Refusal.TLS_AT_A_PLAIN_PORT, TLS_FAULT
        self._host.on_refusal(reason)
        if self._logged is None:
            self._logged = set()
        if reason not in self._logged:
            self._logged.add(reason)
            self._host.log_refusal(reason, self.peer, self.conn, detail)

    # Called by the host and its budgets

    def drain(self) -> None:
        """Ask the session to finish; reset a connection whose handshake is under way."""
        if self._phase is Phase.OPEN:
            self._call(self._session.drain)
        elif self._phase is Phase.OPENING:
            self.abort()

    def evict(self) -> None:
        """Close the connection: of all connections it holds most unfinished input."""
        self.refuse(Refusal.INPUT_BUDGET, f"held {self._held} bytes")
        self.abort()

    def evict_output(self) -> None:
        """Close the connection: of all connections it holds most unread output."""
        self._watch = None
        self._host.output.hold(self.evict_output, 0)
        self.refuse(Refusal.OUTPUT_BUDGET)
        self.abort()

    # Internal

    def _call(self, method: Callable[..., None], *arguments: Any) -> None:
        try:
            method(*arguments)
        except Exception as error:  # noqa: BLE001
            self._fail(error)
        self._update(self._host.now())

    def _fail(self, error: Exception) -> None:
        """Refuse and close after a peer's error; log an internal error and reset this connection only."""
        if isinstance(error, PeerError):
            self.refuse(error.reason, error.detail)
            self.close()
            return
        fields = {"action": "session_failed", "conn": self.conn, "peer": str(self.peer)}
        log.error(
            "internal error in a session; its connection is reset: %r", error, exc_info=error, extra=fields
        )
        self._host.on_local_error()
        self.abort()

    def _update(self, now: float) -> None:
        """Read from the session how much input it holds, and when it is due."""
        if self._phase is not Phase.OPEN:
            return
        session = self._session
        held = session.buffered
        if held != self._held:
            self._held = held
            self._host.budget.hold(self.evict, held)
        if held and not self.peer_ended:
            sockets.acknowledge(self._sock)  # the rest of a request must still come
        due = session.deadline()
        if due is not None and (self.peer_ended or not self._holds):
            self._alarm.set(due, now)

    def _on_alarm(self) -> None:
        now = self._host.now()
        if self._phase is Phase.OPEN:
            self._check_deadline(now)
        if self._is_output_stalled(now):
            self.refuse(Refusal.WRITE_TIMEOUT)
            self.abort()
        if self._watch is not None:
            self._alarm.set(self._watch.next_check, now)

    def _check_deadline(self, now: float) -> None:
        due = self._session.deadline()
        if due is None or (self._holds and not self.peer_ended):
            return
        if now < due:
            self._alarm.set(due, now)
        elif not self.peer_ended and self._postponed != due and sockets.unread_bytes(self._sock):
            # Our loop was late, not the peer: read first. Only once, or a steady sender would never time out.
            self._postponed = due
            self._alarm.set(now + MIN_DELAY_S, now)
        else:
            self._call(self._session.on_time, now)
