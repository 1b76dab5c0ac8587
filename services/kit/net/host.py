"""The surroundings of a connection: its listener or dialler, and the placeholder for a missing session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from services.kit.metrics.metrics import Traffic
from services.kit.net.budget import Budget
from services.kit.session.session import Peer, Session, Wire

ConnectionT_contra = TypeVar("ConnectionT_contra", contravariant=True)


class Host(Protocol[ConnectionT_contra]):
    """The interface of a listener or dialler for its connections."""

    loop: asyncio.AbstractEventLoop
    now: Callable[[], float]  # the loop's clock
    traffic: Traffic
    budget: Budget  # of unfinished input
    output: Budget  # of unread output
    write_buffer_bytes: int
    write_timeout_s: float

    def make_session(self, wire: Wire) -> Session:
        """Return the session of a connection that has just opened."""

    def on_open(self, connection: ConnectionT_contra) -> None:
        """Take note that the connection has its session."""

    def on_lost(self, connection: ConnectionT_contra) -> None:
        """Forget a connection that has ended."""

    def on_refusal(self, reason: str) -> None:
        """Count a refusal."""

    def log_refusal(self, reason: str, peer: Peer, conn: str | None, detail: str) -> None:
        """Log a refusal, rate-limited."""

    def on_local_error(self) -> None:
        """Count an internal error."""


class NoSession:
    """A session that ignores every call: used before a connection opens and after it is lost."""

    buffered = 0

    def deadline(self) -> float | None:
        """Return None: there is nothing to time out."""

    def _ignore(self, *_: object) -> None: ...

    received = eof = lost = on_time = resumed = drain = _ignore


NO_SESSION: Session = NoSession()
