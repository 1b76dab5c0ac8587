"""Parse one client's connection, without I/O (ring.md 5.2)."""

from __future__ import annotations

from collections.abc import Iterator

from protos.connection_input import ConnectionInput
from protos.ring.messages import Limits
from protos.ring.requests import ClientEvent, Refused, read_request


class ClientConnection(ConnectionInput[ClientEvent]):
    """Parses one client's requests; knows nothing of queues, rings or replies.

    After a `Refused` with `close` all input is ignored. PeerError reasons: `unknown_operation`, `truncated`,
    `request_timeout` (5.6).
    """

    __slots__ = ("_limits", "_pending", "_unread")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits.request_timeout_s)
        self._limits = limits
        self._pending: ClientEvent | None = None  # to be yielded ...
        self._unread = 0  # ... when this many more octets have been skipped

    def _parse(self, data: bytes, now: float) -> Iterator[ClientEvent]:
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
            found = read_request(data, position, self._limits)
            if isinstance(found, int):
                self._held += data[position:]
                self._needed = found
                return
            event, position, self._unread = found
            if self._unread:
                self._pending = event
                if self._unfinished_since is None:
                    self._unfinished_since = now
            else:
                yield self._finish(event)

    def _finish(self, event: ClientEvent) -> ClientEvent:
        self._unfinished_since = None
        self._is_over = isinstance(event, Refused) and event.close
        return event

    def _end(self) -> None:
        super()._end()
        self._pending = None
