"""Send LOOPs of the node and USERs on the connection from the head (ring.md 2.2, 4.5)."""

from __future__ import annotations

from collections.abc import Callable

from protos.ring import HeadState, Loop, Node
from services.ring.node.links.outbound import Outbound
from services.ring.node.node_metrics import NodeMetrics
from services.ring.node.outgoing.user_flow import OutgoingMessage, UserSource


class Sending:
    """The host of the outbound connection."""

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

    # OutboundHost

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
