"""The connection from the head to the successor (ring.md 2.2, 4.5): what is sent on it, and what was answered."""

from __future__ import annotations

from typing import Protocol

from protos.ring import (
    Acks,
    BreakLinkForced,
    Leader,
    LinkBroken,
    Loop,
    User,
    Window,
    encode_message,
)
from protos.types import PeerError
from services.kit.session import Peer, Wire
from services.ring.node.figures import LOOP, USER
from services.ring.node.outgoing.passage import Parcel

BACKLOG = 64 << 10  # octets that the kernel has not taken: then no more is sent before an `A` comes

Item = Parcel | Loop


class OutboundHost(Protocol):
    """The node, as its outbound connection sees it."""

    def next_loop(self) -> Loop | None:
        """Of the LOOPs for the successor."""

    def take(self, room: int) -> list[Parcel]:
        """Of the USERs for him; none before his first `A`: somebody who never answers shall not hold them."""

    def sent(self, kind: str) -> None:
        """A message went out."""

    def acknowledged(self) -> None:
        """He has answered something."""

    def returned(self, kind: str) -> None:
        """A message is not answered any more: to count it."""

    def give_back(self, loop: Loop) -> None:
        """The same of a LOOP: it may go with the next link."""

    def outbound_lost(self, session: Outbound, why: str) -> None:
        """The link is broken; told once. What was unanswered has been returned."""


class Outbound:
    """The kit's `Session`."""

    __slots__ = ("_acks", "_host", "_is_busy", "_is_finishing", "_is_over", "_window", "_wire", "since")

    def __init__(self, host: OutboundHost, wire: Wire, window: int, ack_s: float) -> None:
        self.since = wire.loop_time()
        self._host = host
        self._wire = wire
        self._acks = Acks()
        self._window: Window[Item] = Window(window, ack_s)
        self._is_over = False
        self._is_finishing = False
        self._is_busy = False

    @property
    def peer(self) -> Peer:
        return self._wire.peer

    @property
    def is_answered(self) -> bool:
        return not self._window.unacknowledged()

    # what the node tells

    def send(self) -> None:
        """Whatever there is to send, as far as there is room; LOOPs first."""
        if self._is_over or self._is_finishing or self._is_busy:
            return
        self._is_busy = True  # who is asked for messages may call back
        try:
            self._send()
        finally:
            self._is_busy = False

    def finish(self) -> None:
        """Nothing new is sent; what is under way may still be answered."""
        self._is_finishing = True

    def close(self) -> None:
        """The node does not want it any more, and knows it: the successor is told by FIN."""
        if not self._is_over:
            self._give_back()
        self._wire.close()

    # what the kit tells

    buffered = 0

    def received(self, data: bytes, now: float) -> None:
        if self._is_over:
            return
        self._is_busy = (
            True  # nothing is sent before all answers are counted, or one too many would be taken for its
        )
        try:
            for count in self._acks.receive(data):
                for item in self._window.acknowledged(count, now):
                    if not isinstance(item, Leader | LinkBroken | BreakLinkForced):
                        item.acknowledged()
                    self._host.acknowledged()
        except PeerError as error:
            self._wire.refuse(error.reason, error.detail)
            self._break(error.reason)
        finally:
            self._is_busy = False
        self.send()

    def eof(self, now: float) -> None:
        self._break("the successor closed it")

    def lost(self, reset: bool) -> None:
        self._break("it was reset" if reset else "it closed")

    def deadline(self) -> float | None:
        return None if self._is_over else self._window.deadline()

    def on_time(self, now: float) -> None:
        if not self._is_over and self._window.is_late(now):
            self._wire.refuse("ack_timeout")
            self._break("no answer in time")

    def resumed(self, now: float) -> None:
        self.send()

    def drain(self) -> None:
        self.finish()
        self._break("stopping")

    # inside

    def _send(self) -> None:
        now = self._wire.loop_time()
        data: list[bytes] = []
        while (room := self._room()) > 0 and (items := self._next(room)):
            for item in items:
                self._window.sent(item, now)
                data.append(_encoded(item))
                self._host.sent(_kind(item))
            if sum(map(len, data)) > BACKLOG:
                self._wire.write(b"".join(data))
                data.clear()
        if data:
            self._wire.write(b"".join(data))
            self._wire.reschedule()

    def _room(self) -> int:
        return self._window.room if self._wire.backlog() <= BACKLOG else 0

    def _next(self, room: int) -> list[Item]:
        if (loop := self._host.next_loop()) is not None:
            return [loop]
        return [*self._host.take(room)]

    def _break(self, why: str) -> None:
        if not self._is_over:
            self._give_back()
            self._wire.close()
            self._host.outbound_lost(self, why)

    def _give_back(self) -> None:
        """What was not answered, the last first: so it is in order again where it waits (2.2)."""
        self._is_over = True
        for item in reversed(self._window.unacknowledged()):
            self._host.returned(_kind(item))
            if isinstance(item, Leader | LinkBroken | BreakLinkForced):
                self._host.give_back(item)
            else:
                item.returned()


def _kind(item: Item) -> str:
    return LOOP if isinstance(item, Leader | LinkBroken | BreakLinkForced) else USER


def _encoded(item: Item) -> bytes:
    return encode_message(
        item if isinstance(item, Leader | LinkBroken | BreakLinkForced) else User(item.payload)
    )
