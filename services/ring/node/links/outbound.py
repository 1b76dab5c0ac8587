"""The connection from the head to the successor, on which LOOPs and USERs are sent and answered (ring.md 2.2, 4.5)."""

from __future__ import annotations

from collections.abc import Callable

from protos.ring import (
    Acks,
    BreakLinkForced,
    HeadState,
    Leader,
    LinkBroken,
    Loop,
    Node,
    User,
    Window,
    encode_message,
)
from protos.types import PeerError
from services.kit.session import Peer, Wire
from services.ring.node.node_metrics import LOOP, USER, NodeMetrics
from services.ring.node.outgoing.user_flow import OutgoingMessage, UserSource

BACKLOG = 64 << 10  # octets not taken by the kernel: above it nothing is sent until the next `A`

Item = OutgoingMessage | Loop


class Sending:
    """The sending side of a node: its connection to the successor, and what to send on it."""

    def __init__(
        self,
        node: Node,
        metrics: NodeMetrics,
        user_source: UserSource,
        now: Callable[[], float],
        act: Callable[[], None],
    ) -> None:
        """now: loop time in seconds. act: does what the node wants after an event."""
        self.outbound: Outbound | None = None
        self._node = node
        self._metrics = metrics
        self._user_source = user_source
        self._now = now
        self._act = act
        self._has_users = True  # there may be some to take
        user_source.on_ready(self._on_ready)

    @property
    def successor(self) -> Outbound | None:
        """The link, or None while the connection has not been acknowledged."""
        return self.outbound if self._node.head.state is HeadState.LINKED else None

    def begin(self, session: Outbound) -> None:
        """Use a new connection."""
        self.outbound = session
        self._node.connected(self._now())
        self._act()

    def proceed(self) -> None:
        """Send what waits as far as there is room."""
        if self.outbound is not None:
            self.outbound.send()

    def end(self) -> None:
        """Close the connection: the node wants no successor, or another one."""
        session, self.outbound = self.outbound, None
        if session is not None:
            session.close()

    def next_loop(self) -> Loop | None:
        """Return the next LOOP for the successor."""
        return self._node.next_loop()

    def take(self, room: int) -> list[OutgoingMessage]:
        """Return at most `room` USERs for the successor; none before its first `A`."""
        if not self._has_users or self._node.head.state is not HeadState.LINKED:
            return []
        self._has_users = False  # before asking: the source may call `on_ready` at once
        taken = self._user_source.take(room)
        self._has_users = self._has_users or bool(taken)
        return taken

    def sent(self, kind: str) -> None:
        """Count a message that was sent."""
        self._metrics.sent[kind] += 1
        self._node.sent(self._now())

    def acknowledged(self) -> None:
        """Note that the successor has answered a message."""
        self._node.acknowledged(self._now())

    def returned(self, kind: str) -> None:
        """Count a message that stays unanswered."""
        self._metrics.returned[kind] += 1
        self._has_users = True

    def give_back(self, loop: Loop) -> None:
        """Return an unanswered LOOP: it may be sent on the next link."""
        self._node.give_back(loop)

    def outbound_lost(self, session: Outbound, why: str) -> None:
        """Report a broken link to the node."""
        if session is self.outbound:
            self.outbound = None
            self._node.outbound_lost(why, self._now())
            self._act()

    def _on_ready(self) -> None:
        self._has_users = True
        self.proceed()


class Outbound:
    """The kit's `Session` of a link to the successor."""

    __slots__ = ("_acks", "_host", "_is_busy", "_is_finishing", "_is_over", "_window", "_wire", "since")

    def __init__(self, host: Sending, wire: Wire, window: int, ack_s: float) -> None:
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
        """The other end of the connection."""
        return self._wire.peer

    @property
    def is_answered(self) -> bool:
        """True if every message sent has been answered."""
        return not self._window.unacknowledged()

    def send(self) -> None:
        """Send what waits as far as there is room, LOOPs first."""
        if self._is_over or self._is_finishing or self._is_busy:
            return
        self._is_busy = True  # a source of messages may call back
        try:
            self._send()
        finally:
            self._is_busy = False

    def finish(self) -> None:
        """Send nothing new; messages under way may still be answered."""
        self._is_finishing = True

    def close(self) -> None:
        """Close the link with a FIN, at the node's request."""
        if not self._is_over:
            self._give_back()
        self._wire.close()

    buffered = 0

    def received(self, data: bytes, now: float) -> None:
        """Count acknowledgements, then send what there is room for."""
        if self._is_over:
            return
        # Send nothing before all answers are counted: an excess answer must not count for a new message.
        self._is_busy = True
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
        """Break the link: the successor has closed it."""
        self._break("the successor closed it")

    def lost(self, reset: bool) -> None:
        """Break the link: the connection is gone."""
        self._break("it was reset" if reset else "it closed")

    def deadline(self) -> float | None:
        """Return when the oldest unanswered message times out."""
        return None if self._is_over else self._window.deadline()

    def on_time(self, now: float) -> None:
        """Break the link if an answer is late."""
        if not self._is_over and self._window.is_late(now):
            self._wire.refuse("ack_timeout")
            self._break("no answer in time")

    def resumed(self, now: float) -> None:
        """Send again: output is no longer held up."""
        self.send()

    def drain(self) -> None:
        """Break the link for the end of the process."""
        self.finish()
        self._break("stopping")

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
        """Return unanswered messages, the last first: so they are in order again where they wait (2.2)."""
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
