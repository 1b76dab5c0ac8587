"""Define the interface between an edge's session and the kit's connection.

A session is synchronous: it is called with bytes and the time, and calls its wire. There is no task per connection.
All times are seconds of the event loop's clock, as `Wire.loop_time` returns them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection."""

    address: str  # without brackets; IPv4-mapped IPv6 addresses as IPv4
    port: int
    certificate: str | None = None  # mTLS only: the subject's common name, else its first alternative name
    # mTLS only: the subject's common name, and all DNS names and URIs
    names: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


class Wire(Protocol):
    """The interface of a connection for its session. Its methods do not raise after the connection is lost."""

    @property
    def peer(self) -> Peer:
        """Return the other end."""

    @property
    def local(self) -> tuple[str, int] | None:
        """Return our own address, in the form of `Peer.address`, and port; None if the socket is closed.

        Behind NAT the peer may see another address.
        """

    @property
    def conn(self) -> str:
        """Return the connection's name in logs (field `conn`), unique on this machine."""

    def write(self, data: bytes) -> None:
        """Send data after all earlier data. Discarded once the connection is closing."""

    def close(self) -> None:
        """Flush, send FIN, and discard later input."""

    def abort(self) -> None:
        """Reset the connection: unsent data is lost."""

    def pause(self) -> None:
        """Stop reading. Input waits in the kernel, then at the peer."""

    def resume(self) -> None:
        """End the session's pause. Reading goes on unless output is blocked too."""

    def is_blocked(self) -> bool:
        """Return True while too much output waits: hold further replies back until `resumed`."""

    def unsent(self) -> int:
        """Return the bytes written that the peer's TCP has not acknowledged, in this process and the kernel."""

    def backlog(self) -> int:
        """Return the bytes written that the kernel has not taken, with TLS as encrypted; 0 once it is lost.

        Cheap enough to call after every write.
        """

    def watch_output(self) -> None:
        """Close the connection if the peer reads nothing for the listener's `write_timeout_s`.

        Ends once everything written has arrived. May be called repeatedly.
        """

    def name_peer(self, name: str) -> None:
        """Set the name that the peer gave itself, for listings; access does not depend on it."""

    def is_reset(self) -> bool:
        """Return True if the connection cannot carry output any more: reset, timed out, or lost."""

    def soon(self, callback: Callable[[], None]) -> None:
        """Call back in the loop's next iteration: a session with much work lets others have their turn."""

    def reschedule(self) -> None:
        """Read `deadline()` and `buffered` again, after a change outside of a call by the kit."""

    def refuse(self, reason: str, detail: str = "") -> None:
        """Count a refusal; log it once per connection and reason. `reason` is a stable snake_case label."""

    def loop_time(self) -> float:
        """Return the event loop's time in seconds."""


class Session(Protocol):
    """One connection's protocol session.

    If a method raises `protos.types.PeerError`, the connection is refused: counted, logged and closed. Any other
    exception is an internal error: it is logged with a traceback, counted in `penstock_local_errors_total`, and resets
    this connection only.
    """

    def received(self, data: bytes, now: float) -> None:
        """Handle the next bytes, as TCP cut them. Never called while paused or closing."""

    def eof(self, now: float) -> None:
        """Handle the peer's FIN. Writing is still possible until the session closes the wire."""

    def lost(self, reset: bool) -> None:
        """Clean up: called exactly once, last. `reset` is False if both sides closed in order."""

    def deadline(self) -> float | None:
        """Return when `on_time` is due without further input; None for never.

        The deadline is the peer's: it does not apply while reading is paused, and unread bytes are delivered first if
        this process was late. After `eof` it always applies.
        """

    def on_time(self, now: float) -> None:
        """Handle a deadline that has passed."""

    def resumed(self, now: float) -> None:
        """Continue after any pause: reading goes on, held-back replies may be sent.

        Called within `Wire.resume` if that ended the pause.
        """

    def drain(self) -> None:
        """Accept no new work, finish what is under way, and close the wire."""

    @property
    def buffered(self) -> int:
        """Return the bytes of input held in memory, for the budget of all connections."""


# Called when a connection opens. It may write, refuse, close or abort, but not pause: reading begins after it.
SessionFactory = Callable[[Wire], Session]
