"""One TCP stream below a connection: reading on hold, output on its way, and how the stream closes."""

from __future__ import annotations

import asyncio
import enum
import socket
from collections.abc import Callable
from typing import Any

from services.kit.net import sockets
from services.kit.net.alarm import Alarm
from services.kit.net.host import Host
from services.kit.net.output import OutputWatch

LINGER_S = 2.0  # how long late input is discarded after our FIN, before the socket is closed
HELD_BY_SESSION = 1  # reading is paused: the session asked for it
HELD_BY_OUTPUT = 2  # reading is paused: the peer does not read what we write


class Phase(enum.IntEnum):
    """The states of a connection, in the only order in which they follow each other."""

    ACCEPTED = 0  # the loop has no transport for it yet
    OPENING = 1  # the TLS handshake is under way
    OPEN = 2  # the session is active
    CLOSING = 3  # the session is done: flush, send FIN, discard input
    CLOSED = 4  # the transport is closed


class Stream(asyncio.Protocol):
    """The part of a connection that knows its transport but not its session."""

    __slots__ = (
        *("_alarm", "_holds", "_host", "_phase", "_reset", "_sock", "_transport", "_watch"),
        "peer_ended",
        "sent",
    )

    def __init__(self, host: Host[Any], sock: socket.socket, alarm: Alarm) -> None:
        self._host = host
        self._sock = sock
        self._transport: asyncio.Transport
        self._phase = Phase.ACCEPTED
        self._alarm = alarm
        self.peer_ended = False  # its FIN has come
        self._reset = False  # we aborted the connection
        self._holds = 0  # HELD_BY_ flags
        self.sent = 0  # octets
        self._watch: OutputWatch | None = None  # while output is held up or watched, and while closing

    def attach(self, transport: asyncio.Transport) -> None:
        """Use this transport; the session may have to wait for a TLS handshake."""
        self._transport = transport
        transport.set_write_buffer_limits(high=self._host.write_buffer_bytes)
        if self._phase is Phase.ACCEPTED:
            self._phase = Phase.OPENING
        else:  # aborted meanwhile
            transport.abort()

    @property
    def phase(self) -> Phase:
        """Return the connection's state."""
        return self._phase

    # Methods of `Wire`

    def write(self, data: bytes) -> None:
        """Send data; discard it unless the connection is open."""
        if self._phase is Phase.OPEN:
            octets = len(data)
            self.sent += octets
            self._host.traffic.sent += octets
            self._transport.write(data)

    def close(self) -> None:
        """Flush, send FIN, and discard input for up to LINGER_S until the peer closes too."""
        if self._phase not in (Phase.OPENING, Phase.OPEN):
            return
        self._phase = Phase.CLOSING
        if self.peer_ended:
            self._transport.close()
        else:
            # Closing with unread input would make our kernel send a reset, which can destroy the last reply on its
            # way. So send FIN first, then read and discard until the peer has closed too.
            self._transport.write_eof()
            self._transport.resume_reading()
        self._watch_output(LINGER_S)

    def abort(self) -> None:
        """Reset the connection; unsent output is lost."""
        if self._phase is Phase.CLOSED:
            return
        self._reset = True
        sockets.reset_on_close(self._sock)
        if self._phase is not Phase.ACCEPTED:
            self._transport.abort()
        self._phase = Phase.CLOSING

    def pause(self) -> None:
        """Stop reading until the session resumes."""
        self._hold(HELD_BY_SESSION)

    def is_blocked(self) -> bool:
        """Return whether more output waits than the write buffer allows."""
        return bool(self._holds & HELD_BY_OUTPUT)

    def unsent(self) -> int:
        """Return the bytes that the peer's TCP has not acknowledged, in this process and in the kernel."""
        if self._phase is Phase.CLOSED:
            return 0
        return self.backlog() + sockets.unacked_bytes(self._sock)

    def backlog(self) -> int:
        """Return the bytes that the kernel has not taken yet."""
        return 0 if self._phase is Phase.CLOSED else self._transport.get_write_buffer_size()

    def watch_output(self) -> None:
        """Close the connection if the peer does not read pending output for `write_timeout_s`."""
        if self._phase is Phase.OPEN and self._watch is None and self.unsent():
            self._watch_output()

    def is_reset(self) -> bool:
        """Return whether the connection can no longer carry output."""
        return self._phase is Phase.CLOSED or not sockets.carries_data(self._sock)

    def soon(self, callback: Callable[[], None]) -> None:
        """Call back in the loop's next iteration."""
        self._host.loop.call_soon(callback)

    def loop_time(self) -> float:
        """Return the loop's time in seconds."""
        return self._host.now()

    # For the connection

    def _hold(self, why: int) -> None:
        if self._phase is Phase.OPEN:
            if not self._holds:
                self._transport.pause_reading()
            self._holds |= why

    def _release(self, why: int) -> bool:
        """End one hold. Return whether it was the last one of an open connection: reading goes on."""
        if not self._holds & why:
            return False
        self._holds &= ~why
        if self._holds or self._phase is not Phase.OPEN:
            return False
        if not self.peer_ended:
            self._transport.resume_reading()
        return True

    def _watch_output(self, max_interval_s: float = float("inf")) -> None:
        now = self._host.now()
        self._watch = OutputWatch(self._sock, self._host.write_timeout_s, now, max_interval_s)
        self._alarm.set(self._watch.next_check, now)

    def _is_output_stalled(self, now: float) -> bool:
        """Check the watched output if that is due; stop watching it once it has arrived."""
        watch = self._watch
        if watch is None or now < watch.next_check:
            return False
        if self.unsent():
            return watch.is_stalled(now)
        if self._phase is Phase.CLOSING:
            self._transport.abort()  # our FIN has arrived too: the peer had its time to close
        self._watch = None
        return False
