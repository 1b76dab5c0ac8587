"""Define the interfaces between a connection's bytes and its requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar

EventT = TypeVar("EventT")
EventT_co = TypeVar("EventT_co", covariant=True)
EventT_contra = TypeVar("EventT_contra", contravariant=True)


class Parser(Protocol[EventT_co]):
    """A sans-I/O parser of bytes into events. Its iterators parse as they are consumed, and may raise PeerError."""

    def receive(self, data: bytes, now: float) -> Iterator[EventT_co]:
        """Parse a chunk of input."""

    def receive_eof(self, now: float) -> Iterator[EventT_co]:
        """Parse the end of input."""

    def deadline(self) -> float | None:
        """Return when `on_time` is due without further input; None for never."""

    def on_time(self, now: float) -> Iterator[EventT_co]:
        """Return the events of a deadline that has passed."""

    def restart_clock(self, now: float) -> None:
        """Restart the peer's deadline after a pause of reading."""

    @property
    def buffered(self) -> int:
        """Return the bytes held of unfinished requests."""


class Handler(Protocol[EventT_contra]):
    """The receiver of a connection's requests."""

    def handle(self, event: EventT_contra) -> None:
        """Handle a request. It may `hold` later requests until it calls `free`."""

    def work(self, event: EventT_contra) -> int:
        """Return the request's share of a turn: 1 for one request, more for a run. Called after `handle`."""

    def is_exclusive(self, event: EventT_contra) -> bool:
        """Return True if all earlier requests must be answered before this one begins."""

    def end_if_done(self) -> None:
        """Close the connection if nothing is left to do: the input has been handled as far as possible."""
