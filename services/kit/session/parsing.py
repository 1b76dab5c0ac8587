"""Between the bytes of a connection and its requests: who makes events of them, and whom the events are for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar

EventT = TypeVar("EventT")
EventT_co = TypeVar("EventT_co", covariant=True)
EventT_contra = TypeVar("EventT_contra", contravariant=True)


class Parser(Protocol[EventT_co]):
    """Who makes events of bytes, without I/O. Iterators work as they are consumed, and may raise PeerError."""

    def receive(self, data: bytes, now: float) -> Iterator[EventT_co]: ...

    def receive_eof(self, now: float) -> Iterator[EventT_co]:
        """The peer's FIN."""

    def deadline(self) -> float | None:
        """When `on_time` will have something to say, if nothing is received before."""

    def on_time(self, now: float) -> Iterator[EventT_co]: ...

    def restart_clock(self, now: float) -> None:
        """Reading goes on after a pause: the peer's time begins anew."""

    @property
    def buffered(self) -> int:
        """Bytes held of what is unfinished."""


class Handler(Protocol[EventT_contra]):
    """Whom the input is for."""

    def handle(self, event: EventT_contra) -> None:
        """The next request. It may `hold` what follows, until it calls `free`."""

    def work(self, event: EventT_contra) -> int:
        """How much of a turn it takes: 1 for a request alone, more for a long run. Asked after `handle`."""

    def is_exclusive(self, event: EventT_contra) -> bool:
        """True if it must not begin before everything is answered that came before it."""

    def end_if_done(self) -> None:
        """The input has gone as far as it goes for now: perhaps nothing is left to do."""
