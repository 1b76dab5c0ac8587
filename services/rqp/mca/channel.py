"""The connection of one transmission queue to one receiving MCA: dialled, spoken on, and told of (rqp_mca.md 3.3)."""

from __future__ import annotations

import asyncio
from typing import Protocol

from protos.rqp_mca import Confirm, DataConfirm, Limits, SenderConnection
from protos.types import PeerError
from services.kit.net import Dialler
from services.kit.session import Session, Wire
from services.rqp.mca.directory import Endpoint


class ChannelListener(Protocol):
    """Whom a channel tells. Nothing is told of one that was closed, or has told its end."""

    def awaited(self, channel: Channel) -> int:
        """How many messages are out on it."""

    def received(self, channel: Channel, confirm: Confirm, awaited: int) -> None:
        """awaited: of the messages that were out when it came, so many are not confirmed."""

    def lost(self, channel: Channel, trouble: str | PeerError) -> None:
        """PeerError: we close it, as the peer broke the protocol."""

    def has_room(self) -> None:
        """The peer reads again."""


class Channel:
    """The kit's `Session` once it is open."""

    __slots__ = ("_first", "_hearer", "_is_over", "_parser", "_task", "_wire", "endpoint")

    def __init__(
        self, endpoint: Endpoint, dialler: Dialler, limits: Limits, hearer: ChannelListener, first: bytes
    ) -> None:
        """first: what is said as soon as somebody is there."""
        self.endpoint = endpoint
        self._hearer = hearer
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
        """Our end of it, once it is open."""
        return None if self._wire is None else self._wire.local

    def write(self, data: bytes) -> None:
        if self._wire is not None:
            self._wire.write(data)

    def is_blocked(self) -> bool:
        """The peer does not read what it was sent."""
        return self._wire is not None and self._wire.is_blocked()

    def close(self) -> None:
        """What was written still goes out."""
        self._is_over = True
        if self._wire is not None:
            self._wire.close()
        else:
            self._task.cancel()

    def abort(self) -> None:
        """What has not gone out does not any more."""
        self._is_over = True
        if self._wire is not None:
            self._wire.abort()
        else:
            self._task.cancel()

    def _end(self, trouble: str | PeerError) -> None:
        if not self._is_over:
            self._is_over = True
            self._hearer.lost(self, trouble)

    # what the kit tells

    def received(self, data: bytes, now: float) -> None:
        """After PeerError the kit counts it and closes."""
        awaited = self._hearer.awaited(self)
        try:
            for confirm in self._parser.receive(data, now):
                if self._is_over:
                    return
                self._hearer.received(self, confirm, awaited)
                if isinstance(confirm, DataConfirm):
                    awaited = max(awaited - confirm.count, 0)
        except PeerError as error:
            self._end(error)
            raise

    def eof(self, now: float) -> None:
        self._end("closed by the peer")
        if self._wire is not None:
            self._wire.close()

    def lost(self, reset: bool) -> None:
        self._end("the connection was lost")

    def deadline(self) -> float | None:
        return None if self._is_over else self._parser.deadline()

    def on_time(self, now: float) -> None:
        try:
            for _ in self._parser.on_time(now):
                pass
        except PeerError as error:
            self._end(error)
            raise

    def resumed(self, now: float) -> None:
        self._parser.restart_clock(now)
        self._hearer.has_room()

    def drain(self) -> None:
        """The carrier ends it: by then what is out has been confirmed, or will not be."""

    @property
    def buffered(self) -> int:
        return self._parser.buffered
