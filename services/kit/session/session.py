"""What a session and its connection owe each other: the one seam between an edge and the kit.

A session is synchronous: it is called with bytes and the time, and calls its wire. There is no task per
connection. All times are seconds of the event loop's clock, as given by `Wire.loop_time`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end."""

    address: str  # without brackets; an IPv4 address that came in over IPv6 is written as IPv4
    port: int
    certificate: str | None = None  # mTLS only: the subject's common name, else its first alternative name
    names: frozenset[str] = (
        frozenset()
    )  # mTLS only: the subject's common name, and each DNS name and URI beside it

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


class Wire(Protocol):
    """What a session may do with its connection. Nothing here raises once the connection has gone."""

    @property
    def peer(self) -> Peer: ...

    @property
    def local(self) -> tuple[str, int] | None:
        """Our own address, written as a peer's, and port: what the other end sees where no address is translated.

        None where the kernel does not know it any more.
        """

    @property
    def conn(self) -> str:
        """The connection's name in the logs, unique on this machine: the field `conn`."""

    def write(self, data: bytes) -> None:
        """Send after all that was written before. Dropped once the connection is closing."""

    def close(self) -> None:
        """Orderly: what was written is flushed, then FIN; later input is read and thrown away."""

    def abort(self) -> None:
        """At once, with a reset: what is unsent is lost, and the peer is told so."""

    def pause(self) -> None:
        """Stop reading, for the session's own reasons. The bytes wait in the kernel, then at the peer."""

    def resume(self) -> None:
        """End the session's own pause. Reading goes on only when the output is not held up either."""

    def is_blocked(self) -> bool:
        """True while more output waits than is allowed: hold further answers back until `resumed`."""

    def unsent(self) -> int:
        """Bytes written that the peer's TCP has not acknowledged, here and in the kernel."""

    def backlog(self) -> int:
        """Bytes written that the kernel has not taken yet, over TLS as encrypted; 0 once the connection has gone.

        Cheap: it may be asked after every write.
        """

    def watch_output(self) -> None:
        """More waits for the peer than it takes: if it takes nothing for the listener's `write_timeout_s`, close.

        Ends once all that was written has been taken. May be asked for again and again.
        """

    def name_peer(self, name: str) -> None:
        """Who the peer says it is, for whoever looks at the connections; nothing is allowed or refused by it."""

    def is_reset(self) -> bool:
        """True if the connection cannot carry our bytes any more: reset, timed out, or gone."""

    def soon(self, callback: Callable[[], None]) -> None:
        """Call back once the loop has made its round: a session that has much to do lets the others have their turn."""

    def reschedule(self) -> None:
        """`deadline()` or `buffered` changed outside of a call by the kit: look at them again."""

    def refuse(self, reason: str, detail: str = "") -> None:
        """Count a refusal; log it once per connection and reason. `reason` is a stable snake_case label."""

    def loop_time(self) -> float:
        """Now, in seconds of the event loop's clock."""


class Session(Protocol):
    """One connection's conversation.

    A method that raises `protos.types.PeerError` has the connection counted, logged and closed in order;
    any other exception is our bug: traceback, `penstock_local_errors_total`, abort of this connection only.
    """

    def received(self, data: bytes, now: float) -> None:
        """The peer's next bytes, cut wherever TCP cut them. Never called while paused or closing."""

    def eof(self, now: float) -> None:
        """The peer's FIN: no more input. Writing is still possible until the session closes the wire."""

    def lost(self, reset: bool) -> None:
        """The connection has gone; called exactly once, last. True unless both sides ended it in order."""

    def deadline(self) -> float | None:
        """When `on_time` is due if the peer stays silent; None for never.

        It is a clock on the peer: it stands still while reading is paused, whoever paused it, and after a
        stall of ours the unread bytes are delivered first. After `eof` it always runs.
        """

    def on_time(self, now: float) -> None:
        """The deadline has passed."""

    def resumed(self, now: float) -> None:
        """Nothing holds the connection back any more: reading goes on, held-back answers may follow.

        Called after any pause, within `Wire.resume` if that was what ended it.
        """

    def drain(self) -> None:
        """Take no new work; finish what is under way, then close the wire."""

    @property
    def buffered(self) -> int:
        """Bytes of the peer's input held in memory, for the budget over all connections."""


# Called when a connection is open. It may write, refuse, close, even abort, but not pause: reading begins after it.
SessionFactory = Callable[[Wire], Session]
