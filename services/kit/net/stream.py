"""One TCP stream under a connection: who holds its reading up, what of its output is on its way, how it ends."""

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

LINGER_S = 2.0  # after our FIN: how long the peer's late input is thrown away before we close
HELD_BY_SESSION = 1  # why reading is paused: the session asked for it
HELD_BY_OUTPUT = 2  # why reading is paused: the peer does not read what we write


class Phase(enum.IntEnum):
    """Where a connection stands; it only ever moves down this list."""

    ACCEPTED = 0  # the loop has no transport for it yet
    OPENING = 1  # the TLS handshake is under way
    OPEN = 2  # the session talks
    CLOSING = 3  # nothing more from the session: flush, FIN, throw away what still comes
    GONE = 4  # the transport has let go


class Stream(asyncio.Protocol):
    """The part of a connection that knows the transport and no session."""

    __slots__ = (
        *("_alarm", "_holds", "_host", "_phase", "_reset", "_sock", "_transport", "_watch"),
        "peer_ended",
        "sent",
    )

    def __init__(self, host: Host[Any], sock: socket.socket) -> None:
        self._host = host
        self._sock = sock
        self._transport: asyncio.Transport
        self._phase = Phase.ACCEPTED
        self._alarm = Alarm(host.loop, self._on_alarm)
        self.peer_ended = False  # its FIN has come
        self._reset = False  # we broke it off
        self._holds = 0  # HELD_BY_ flags
        self.sent = 0  # octets
        self._watch: OutputWatch | None = None  # while output is held up or looked after, and while closing

    def attach(self, transport: asyncio.Transport) -> None:
        """The loop has a transport; TLS may come before the session."""
        self._transport = transport
        transport.set_write_buffer_limits(high=self._host.write_buffer_bytes)
        if self._phase is Phase.ACCEPTED:
            self._phase = Phase.OPENING
        else:  # aborted meanwhile
            transport.abort()

    @property
    def phase(self) -> Phase:
        return self._phase

    # What `Wire` promises

    def write(self, data: bytes) -> None:
        if self._phase is Phase.OPEN:
            octets = len(data)
            self.sent += octets
            self._host.traffic.sent += octets
            self._transport.write(data)

    def close(self) -> None:
        if self._phase not in (Phase.OPENING, Phase.OPEN):
            return
        self._phase = Phase.CLOSING
        if self.peer_ended:
            self._transport.close()
        else:
            # Closing with input unread would make our kernel send a reset, which can destroy the last answer
            # on its way: so FIN first, then read and throw away until the peer has closed too.
            self._transport.write_eof()
            self._transport.resume_reading()
        self._watch_output(LINGER_S)

    def abort(self) -> None:
        if self._phase is Phase.GONE:
            return
        self._reset = True
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
        return self.backlog() + sockets.unacked_bytes(self._sock)

    def backlog(self) -> int:
        return 0 if self._phase is Phase.GONE else self._transport.get_write_buffer_size()

    def watch_output(self) -> None:
        if self._phase is Phase.OPEN and self._watch is None and self.unsent():
            self._watch_output()

    def is_reset(self) -> bool:
        return self._phase is Phase.GONE or not sockets.carries_data(self._sock)

    def soon(self, callback: Callable[[], None]) -> None:
        self._host.loop.call_soon(callback)

    def loop_time(self) -> float:
        return self._host.now()

    # What the loop tells of the output

    def pause_writing(self) -> None:
        self._hold(HELD_BY_OUTPUT)
        if self._phase is Phase.OPEN:
            watch = self._watch_output()
            self._host.output.hold(watch, self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        if self._phase is Phase.OPEN:
            self._unwatch()
        self._release(HELD_BY_OUTPUT)

    # Inside

    def _hold(self, why: int) -> None:
        if self._phase is Phase.OPEN:
            if not self._holds:
                self._transport.pause_reading()
            self._holds |= why

    def _release(self, why: int) -> None:
        if not self._holds & why:
            return
        self._holds &= ~why
        if not self._holds and self._phase is Phase.OPEN:
            if not self.peer_ended:
                self._transport.resume_reading()
            self._on_released()

    def _watch_output(self, first_check_s: float = float("inf")) -> OutputWatch:
        self._unwatch()
        now = self._host.now()
        watch = OutputWatch(
            self._sock, self._host.write_timeout_s, now, self._on_output_budget, first_check_s
        )
        self._watch = watch
        self._alarm.set(watch.next_check, now)
        return watch

    def _unwatch(self) -> None:
        if self._watch is not None:
            self._host.output.hold(self._watch, 0)
            self._watch = None

    def _on_alarm(self) -> None:
        watch = self._watch
        if watch is None or self._phase is Phase.GONE:
            return
        now = self._host.now()
        if now >= watch.next_check:
            if not self.unsent():
                self._all_arrived()
                return
            if watch.is_stalled(now):
                self._on_stalled()
        self._alarm.set(watch.next_check, now)

    def _all_arrived(self) -> None:
        if self._phase is Phase.CLOSING:
            self._transport.abort()  # FIN too: the peer had its time to close
        else:
            self._unwatch()

    def _on_released(self) -> None:
        """Nothing holds the reading up any more."""
        raise NotImplementedError

    def _on_output_budget(self) -> None:
        """Of all output that is held up, this connection holds most, and it is too much."""
        raise NotImplementedError

    def _on_stalled(self) -> None:
        """The peer has taken nothing of our output for the limit."""
        raise NotImplementedError
