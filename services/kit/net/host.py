"""What stands around a connection: its listener or dialler, as it sees them, and nobody, before its session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from services.kit.metrics.metrics import Traffic
from services.kit.net.budget import Budget
from services.kit.session.session import Peer, Session, Wire

ConnectionT_contra = TypeVar("ConnectionT_contra", contravariant=True)


class Host(Protocol[ConnectionT_contra]):
    """What a connection needs of its listener or dialler."""

    loop: asyncio.AbstractEventLoop
    now: Callable[[], float]  # the loop's clock
    traffic: Traffic
    budget: Budget  # of unfinished input
    output: Budget  # that is held up
    write_buffer_bytes: int
    write_timeout_s: float

    def make_session(self, wire: Wire) -> Session:
        """It is open: who talks on it?"""

    def on_open(self, connection: ConnectionT_contra) -> None:
        """It has a session now."""

    def on_gone(self, connection: ConnectionT_contra) -> None:
        """It has gone."""

    def on_refusal(self, reason: str) -> None:
        """Count it."""

    def log_refusal(self, reason: str, peer: Peer, conn: str | None, detail: str) -> None:
        """Log it, unless there are too many."""

    def on_local_error(self) -> None:
        """Count a fault of our own."""


class NoSession:
    """Stands where a session is not yet or no longer: takes everything and wants nothing."""

    buffered = 0

    def deadline(self) -> float | None:
        return None

    def _ignore(self, *_: object) -> None: ...

    received = eof = lost = on_time = resumed = drain = _ignore


NO_SESSION: Session = NoSession()
