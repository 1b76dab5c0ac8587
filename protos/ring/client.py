"""One queue client's connection, without I/O: what TCP delivers in, events out (ring.md 5.2)."""

from __future__ import annotations

from collections.abc import Iterator

from protos.ring.messages import Limits
from protos.ring.requests import ClientEvent, Refused, read_request
from protos.types import PeerError


class ClientConnection:
    """Parses one client's requests; knows nothing of queues, rings or replies.

    `now` is any clock in seconds that never runs backwards. Consume each iterator to its end (or drop the
    connection) before the next call. The events do not depend on how the octets were cut, except for where
    runs are cut. Once PeerError was raised, a `Refused` with `close` handed out, or the end of input seen,
    the connection is over: whatever still comes is ignored.

    PeerError reasons: `unknown_operation`, `truncated`, `request_timeout` (5.6).
    """

    __slots__ = ("_held", "_is_over", "_limits", "_needed", "_pending", "_unfinished_since", "_unread")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held = bytearray()  # of an unfinished request
        self._needed = 0  # octets of it before it is worth reading again
        self._pending: ClientEvent | None = None  # to be handed out ...
        self._unread = 0  # ... when so many more octets have gone by
        self._unfinished_since: float | None = None
        self._is_over = False

    @property
    def buffered(self) -> int:
        """Octets held of an unfinished request: never more than a head and the largest message."""
        return len(self._held)

    def receive(self, data: bytes, now: float) -> Iterator[ClientEvent]:
        """What `data` completes, in order; then PeerError if an operation follows that nobody can ask for."""
        if self._is_over:
            return
        if self._held:
            self._held += data  # grows in place: a large message may come in many small pieces
            if len(self._held) < self._needed:
                return
            data = bytes(self._held)
            self._held.clear()
        yield from self._parse(data)
        if self._unfinished_since is None and (self._held or self._pending is not None):
            self._unfinished_since = now

    def receive_eof(self, now: float) -> Iterator[ClientEvent]:
        """The client's FIN; PeerError if it cuts a request short."""
        is_unfinished = self._unfinished_since is not None
        self._end()
        if is_unfinished:
            raise PeerError("truncated")
        yield from ()

    def deadline(self) -> float | None:
        """When `on_time` will have something to say; None while nothing is unfinished."""
        if self._unfinished_since is None:
            return None
        return self._unfinished_since + self._limits.request_timeout_s

    def on_time(self, now: float) -> Iterator[ClientEvent]:
        """PeerError for a request that has been unfinished for too long."""
        due = self.deadline()
        if due is not None and now >= due:
            self._end()
            raise PeerError("request_timeout")
        yield from ()

    def restart_clock(self, now: float) -> None:
        """Reading had been paused by us, so the silence was not the peer's: all waiting begins anew."""
        if self._unfinished_since is not None:
            self._unfinished_since = now

    def _parse(self, data: bytes) -> Iterator[ClientEvent]:
        position = 0
        while not self._is_over:
            if self._pending is not None:
                gone = min(self._unread, len(data) - position)
                self._unread -= gone
                position += gone
                if self._unread:
                    return
                event, self._pending = self._pending, None
                yield self._finish(event)
            if position == len(data) or self._is_over:
                return
            found = self._read(data, position)
            if isinstance(found, int):
                self._held += data[position:]
                self._needed = found
                return
            event, position, self._unread = found
            if self._unread:
                self._pending = event
            else:
                yield self._finish(event)

    def _read(self, data: bytes, position: int) -> tuple[ClientEvent, int, int] | int:
        try:
            return read_request(data, position, self._limits)
        except PeerError:
            self._end()
            raise

    def _finish(self, event: ClientEvent) -> ClientEvent:
        """The request is whole: what comes next is another one, if there may be any."""
        self._unfinished_since = None
        self._is_over = isinstance(event, Refused) and event.close
        return event

    def _end(self) -> None:
        """Nothing is awaited any more, and nothing listened to."""
        self._held.clear()
        self._pending = None
        self._unfinished_since = None
        self._is_over = True
