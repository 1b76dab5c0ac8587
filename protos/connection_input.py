"""Parse the input of a connection: keep the octets of an unfinished message, and limit the time for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

from protos.types import PeerError

EventT = TypeVar("EventT")


class ConnectionInput(ABC, Generic[EventT]):
    """A parser of what TCP delivers into events, without I/O.

    `now` is any clock in seconds that never runs backwards. Consume each iterator to its end (or drop the connection)
    before the next call. The events do not depend on how TCP cut the octets, except for where runs are cut. Once
    PeerError was raised or the end of input seen, the connection is over: later input is ignored.

    PeerError reasons here: `truncated`, `request_timeout`.
    """

    __slots__ = ("_held", "_is_over", "_needed", "_timeout_s", "_unfinished_since")

    def __init__(self, timeout_s: float) -> None:
        """Begin without input.

        Args:
            timeout_s: How long a message may stay unfinished.
        """
        self._timeout_s = timeout_s
        self._held = bytearray()  # of an unfinished message
        self._needed = 0  # octets of it before it is worth reading again
        self._unfinished_since: float | None = None
        self._is_over = False

    @property
    def buffered(self) -> int:
        """Return the octets held of an unfinished message: at most a head and the largest acceptable body."""
        return len(self._held)

    def receive(self, data: bytes, now: float) -> Iterator[EventT]:
        """Yield what `data` completes, in order; then raise PeerError if something else follows.

        Args:
            data: Bytes as TCP delivered them, cut anywhere.
            now: Seconds.

        Raises:
            PeerError: The peer broke the protocol; all events before it have been yielded.
        """
        if self._is_over:
            return
        if self._held:
            self._held += data  # grows in place: a large message may come in many small pieces
            if len(self._held) < self._needed:
                return
            data = bytes(self._held)
            self._held.clear()
        try:
            yield from self._parse(data, now)
        except PeerError:
            self._end()
            raise
        if self._held and self._unfinished_since is None:
            self._unfinished_since = now

    def receive_eof(self, now: float) -> Iterator[EventT]:
        """Handle the peer's FIN; raise PeerError if it cuts a message short."""
        is_unfinished = self._unfinished_since is not None
        self._end()
        if is_unfinished:
            raise PeerError("truncated")
        yield from ()

    def deadline(self) -> float | None:
        """Return when `on_time` is due; None while no message is unfinished."""
        return None if self._unfinished_since is None else self._unfinished_since + self._timeout_s

    def on_time(self, now: float) -> Iterator[EventT]:
        """Raise PeerError for a message that has been unfinished for too long."""
        due = self.deadline()
        if due is not None and now >= due:
            self._end()
            raise PeerError("request_timeout")
        yield from ()

    def restart_clock(self, now: float) -> None:
        """Restart the time limit: reading was paused, so the silence was not the peer's."""
        if self._unfinished_since is not None:
            self._unfinished_since = now

    @abstractmethod
    def _parse(self, data: bytes, now: float) -> Iterator[EventT]:
        """Yield the events in `data`, and keep what is unfinished in `_held`."""

    def _end(self) -> None:
        """Ignore all later input."""
        self._held.clear()
        self._unfinished_since = None
        self._is_over = True
