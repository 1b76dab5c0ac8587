"""One connection: the shell between an event loop's transport and a session.

Everything here runs in loop callbacks. There is no task per connection, one timer, and few fields: thousands of
idle connections have to be cheap.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import os
import socket
from collections.abc import Callable
from itertools import count
from typing import Any, cast

from protos.types import PeerError
from services.kit import sockets
from services.kit.alarm import MIN_DELAY_S, Alarm
from services.kit.host import NOBODY, Host
from services.kit.output import OutputWatch
from services.kit.refusals import Refusal
from services.kit.session import Peer

log = logging.getLogger(__name__)

LINGER_S = 2.0  # after our FIN: how long the peer's late input is thrown away before we close
HELD_BY_SESSION = 1  # why reading is paused: the session asked for it
HELD_BY_OUTPUT = 2  # why reading is paused: the peer does not read what we write
_numbers = count(1)


class Phase(enum.IntEnum):
    """Where a connection stands; it only ever moves down this list."""

    ACCEPTED = 0  # the loop has no transport for it yet
    OPENING = 1  # the TLS handshake is under way
    OPEN = 2  # the session talks
    CLOSING = 3  # nothing more from the session: flush, FIN, throw away what still comes
    GONE = 4  # the transport has let go


class Connection(asyncio.Protocol):
    """An asyncio protocol towards the loop, a `Wire` towards its session."""

    __slots__ = (
        "_alarm",
        "_eof",
        "_held",
        "_holds",
        "_host",
        "_logged",
        "_number",
        "_phase",
        "_postponed",
        "_reset",
        "_session",
        "_sock",
        "_transport",
        "_watch",
        "peer",
    )

    def __init__(self, host: Host, sock: socket.socket, peer: Peer) -> None:
        self.peer = peer
        self._host = host
        self._sock = sock
        self._transport: asyncio.Transport
        self._session = NOBODY
        self._number = next(_numbers)
        self._phase = Phase.ACCEPTED
        self._alarm = Alarm(host.loop, self._on_alarm)
        self._eof = False  # the peer's FIN has come
        self._reset = False  # we broke it off
        self._holds = 0  # HELD_BY_ flags
        self._held = 0  # bytes of the session's unfinished input, as the budget knows it
        self._postponed = 0.0  # the deadline that unread bytes have put off, once
        self._watch: OutputWatch | None = None  # while output is held up, and while closing
        self._logged: set[str] | None = None  # reasons of refusals that are in the log already

    # Towards the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A plain connection is open at once; TLS calls `attach`, and `open` after its handshake."""
        self.attach(cast(asyncio.Transport, transport))
        self.open(self.peer)

    def attach(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=self._host.write_buffer_bytes)
        if self._phase is Phase.ACCEPTED:
            self._phase = Phase.OPENING
        else:  # aborted meanwhile
            transport.abort()

    def open(self, peer: Peer) -> None:
        if self._phase is not Phase.OPENING:
            return
        self.peer = peer
        self._phase = Phase.OPEN
        try:
            self._session = self._host.factory(self)
        except Exception as error:  # noqa: BLE001
            self._failed(error)
        self._host.on_open(self)
        self._look(self._host.now())

    def data_received(self, data: bytes) -> None:
        host = self._host
        host.traffic.received += len(data)
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
        if not self._eof:
            self._eof = True
            if self._phase is Phase.OPEN:
                now = self._host.now()
                self._call(self._session.eof, now)
                self._look(now)
            else:
                self._transport.close()
        return True

    def pause_writing(self) -> None:
        self._hold(HELD_BY_OUTPUT)
        if self._phase is Phase.OPEN:
            self._watch_output(OutputWatch(self._sock, self._host.write_timeout_s, self._host.now()))

    def resume_writing(self) -> None:
        if self._phase is Phase.OPEN:
            self._watch = None
        self._release(HELD_BY_OUTPUT)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._phase is Phase.GONE:
            return
        # Once both sides have sent FIN, the state of the socket does not tell an orderly end from a reset.
        reset = exc is not None or self._reset or (self._phase is Phase.OPEN and self.is_reset())
        self._phase = Phase.GONE
        self._alarm.cancel()
        self._watch = None
        self._host.budget.hold(self, 0)
        session, self._session = self._session, NOBODY
        self._call(session.lost, reset)
        self._host.on_gone(self)

    # Towards the session: `Wire`

    @property
    def conn(self) -> str:
        return f"{os.getpid():x}.{self._number}"

    def write(self, data: bytes) -> None:
        if self._phase is Phase.OPEN:
            self._host.traffic.sent += len(data)
            self._transport.write(data)

    def close(self) -> None:
        if self._phase not in (Phase.OPENING, Phase.OPEN):
            return
        self._phase = Phase.CLOSING
        if self._eof:
            self._transport.close()
        else:
            # Closing with input unread would make our kernel send a reset, which can destroy the last answer
            # on its way: so FIN first, then read and throw away until the peer has closed too.
            self._transport.write_eof()
            self._transport.resume_reading()
        self._watch_output(OutputWatch(self._sock, self._host.write_timeout_s, self._host.now(), LINGER_S))

    def abort(self) -> None:
        if self._phase is Phase.GONE:
            return
        self._reset = True
        self._host.budget.hold(self, 0)
        sockets.reset_on_close(self._sock)
        if self._phase is not Phase.ACCEPTED:
            self._transport.abort()
        self._phase = Phase.CLOSING

    def pause(self) -> None:
        self._hold(HELD_BY_SESSION)

    def resume(self) -> None:
        self._release(HELD_BY_SESSION)

    def is_blocked(self) -> bool:
        return bool(self._holds & HELD_BY_OUTPUT)

    def unsent(self) -> int:
        if self._phase is Phase.GONE:
            return 0
        return self._transport.get_write_buffer_size() + sockets.unacked_bytes(self._sock)

    def is_reset(self) -> bool:
        return self._phase is Phase.GONE or not sockets.carries_data(self._sock)

    def reschedule(self) -> None:
        self._look(self._host.now())

    def refuse(self, reason: str, detail: str = "") -> None:
        self._host.on_refusal(reason)
        if self._logged is None:
            self._logged = set()
        if reason not in self._logged:
            self._logged.add(reason)
            self._host.log_refusal(reason, self.peer, self.conn, detail)

    def loop_time(self) -> float:
        return self._host.now()

    # Towards the listener and the budget

    def drain(self) -> None:
        if self._phase is Phase.OPEN:
            self._call(self._session.drain)
            self._look(self._host.now())
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
        due = session.deadline()
        if due is not None and (self._eof or not self._holds):
            self._alarm.set(due, now)
            if not self._eof:
                sockets.acknowledge(self._sock)  # the peer owes us the rest of something

    def _hold(self, why: int) -> None:
        if self._phase is Phase.OPEN:
            if not self._holds:
                self._transport.pause_reading()
            self._holds |= why

    def _release(self, why: int) -> None:
        if not self._holds & why:
            return
        self._holds &= ~why
        if self._holds or self._phase is not Phase.OPEN:
            return
        if not self._eof:
            self._transport.resume_reading()
        now = self._host.now()
        self._call(self._session.resumed, now)
        self._look(now)

    def _watch_output(self, watch: OutputWatch) -> None:
        self._watch = watch
        self._alarm.set(watch.next_check, self._host.now())

    def _on_alarm(self) -> None:
        now = self._host.now()
        if self._phase is Phase.OPEN:
            self._check_deadline(now)
        if self._watch is not None:
            if now >= self._watch.next_check:
                self._check_output(self._watch, now)
            self._alarm.set(self._watch.next_check, now)

    def _check_deadline(self, now: float) -> None:
        due = self._session.deadline()
        if due is None or (self._holds and not self._eof):
            return
        if now < due:
            self._alarm.set(due, now)
        elif not self._eof and self._postponed != due and sockets.unread_bytes(self._sock):
            # Not the peer was silent but our loop: read first. Only once, or a steady sender is never late.
            self._postponed = due
            self._alarm.set(now + MIN_DELAY_S, now)
        else:
            self._call(self._session.on_time, now)
            self._look(now)

    def _check_output(self, watch: OutputWatch, now: float) -> None:
        if self._phase is Phase.CLOSING and not self.unsent():
            self._transport.abort()  # all of it has arrived, FIN too: the peer had its time to close
        elif watch.is_stalled(now):
            self.refuse(Refusal.WRITE_TIMEOUT)
            self.abort()
