"""The connection of one transmission queue to one receiving MCA (rqp_mca.md 3.3)."""

from __future__ import annotations

import asyncio
from typing import Protocol

from protos.rqp_mca import Confirm, DataConfirm, Limits, SenderConnection
from protos.types import PeerError
from services.kit.net import Dialler
from services.kit.session import Session, Wire
from services.rqp.mca.directory import Endpoint


class ChannelListener(Protocol):
    """The listener of a channel's events. They end when the channel is closed or has reported its loss."""

    def awaited(self, channel: Channel) -> int:
        """Return how many messages sent on the channel are unconfirmed."""

    def received(self, channel: Channel, confirm: Confirm, awaited: int) -> None:
        """Handle a confirmation. awaited: how many of the messages sent before it are still unconfirmed."""

    def lost(self, channel: Channel, trouble: str | PeerError) -> None:
        """Handle the loss of the connection. PeerError: the peer broke the protocol."""

    def has_room(self) -> None:
        """Send more: the peer reads again."""


class Channel:
    """A connection to a peer, dialled at once; the kit's `Session` once it is open."""

    __slots__ = ("_first", "_is_over", "_listener", "_parser", "_task", "_wire", "endpoint")

    def __init__(
        self, endpoint: Endpoint, dialler: Dialler, limits: Limits, listener: ChannelListener, first: bytes
    ) -> None:
        """first: the message to send as soon as the connection is open."""
        self.endpoint = endpoint
        self._listener = listener
        self._parser = SenderConnection(endpoint.profile, limits)
        self._first = first
        self._wire: Wire | None = None
        self._is_over = False
        self._task = asyncio.create_task(self._dial(dialler), name=f"dial {endpoint.key}")

    async def _dial(self, dialler: Dialler) -> None:
        try:
            await dialler.connect(self.endpoint.host, self.endpoint.port, self._opened)
        except OSError as error:
            self._end(str(error))

    def _opened(self, wire: Wire) -> Session:
        self._wire = wire
        wire.write(self._first)
        return self

    @property
    def local(self) -> tuple[str, int] | None:
        """The local address and port, once it is open."""
        return None if self._wire is None else self._wire.local

    def write(self, data: bytes) -> None:
        """Send data if the connection is open."""
        if self._wire is not None:
            self._wire.write(data)

    def is_blocked(self) -> bool:
        """Return whether the peer does not read what it was sent."""
        return self._wire is not None and self._wire.is_blocked()

    def close(self) -> None:
        """Close after sending what was written."""
        self._is_over = True
        if self._wire is not None:
            self._wire.close()
        else:
            self._task.cancel()

    def abort(self) -> None:
        """Close without sending what is left."""
        self._is_over = True
        if self._wire is not None:
            self._wire.abort()
        else:
            self._task.cancel()

    def _end(self, trouble: str | PeerError) -> None:
        if not self._is_over:
            self._is_over = True
            self._listener.lost(self, trouble)

    # callbacks from the kit

    def received(self, data: bytes, now: float) -> None:
        """Parse confirmations and report them. Raises PeerError."""
        awaited = self._listener.awaited(self)
        try:
            for confirm in self._parser.receive(data, now):
                if self._is_over:
                    return
                self._listener.received(self, confirm, awaited)
                if isinstance(confirm, DataConfirm):
                    awaited = max(awaited - confirm.count, 0)
        except PeerError as error:
            self._end(error)
            raise

    def eof(self, now: float) -> None:
        """Report the peer's FIN as the loss of the connection."""
        self._end("closed by the peer")
        if self._wire is not None:
            self._wire.close()

    def lost(self, reset: bool) -> None:
        """Report the loss of the connection."""
        self._end("the connection was lost")

    def deadline(self) -> float | None:
        """Return when an unfinished message times out."""
        return None if self._is_over else self._parser.deadline()

    def on_time(self, now: float) -> None:
        """Report a message that timed out. Raises PeerError."""
        try:
            for _ in self._parser.on_time(now):
                pass
        except PeerError as error:
            self._end(error)
            raise

    def resumed(self, now: float) -> None:
        """Go on after the kit paused the connection."""
        self._parser.restart_clock(now)
        self._listener.has_room()

    def drain(self) -> None:
        """Do nothing: the sending agent closes it when messages in flight are settled."""

    @property
    def buffered(self) -> int:
        """Octets held of an unfinished message."""
        return self._parser.buffered
