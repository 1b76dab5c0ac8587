"""What goes out on the connection from the head: LOOPs of the node, USERs of whoever has some (ring.md 2.2, 4.5)."""

from __future__ import annotations

from collections.abc import Callable

from protos.ring import HeadState, Loop, Node
from services.ring.node.figures import Figures
from services.ring.node.links.outbound import Outbound
from services.ring.node.outgoing.passage import Departures, Parcel


class Sending:
    """The outbound connection's host."""

    def __init__(
        self,
        node: Node,
        figures: Figures,
        departures: Departures,
        now: Callable[[], float],
        act: Callable[[], None],
    ) -> None:
        """now: loop time, seconds. act: does what the node wants after something has happened to it."""
        self.outbound: Outbound | None = None
        self._node = node
        self._figures = figures
        self._departures = departures
        self._now = now
        self._act = act
        self._has_users = True  # as far as is known: there may be some to take
        departures.on_ready(self._on_ready)

    @property
    def successor(self) -> Outbound | None:
        return self.outbound if self._node.head.state is HeadState.LINKED else None

    def begin(self, session: Outbound) -> None:
        self.outbound = session
        self._node.connected(self._now())
        self._act()

    def proceed(self) -> None:
        """Sends what there is to send, as far as there is room."""
        if self.outbound is not None:
            self.outbound.send()

    def end(self) -> None:
        """The node wants no successor, or another one."""
        session, self.outbound = self.outbound, None
        if session is not None:
            session.close()

    # what the connection asks

    def next_loop(self) -> Loop | None:
        return self._node.next_loop()

    def take(self, room: int) -> list[Parcel]:
        if not self._has_users or self._node.head.state is not HeadState.LINKED:
            return []
        self._has_users = False  # before asking: whoever is asked may say at once that there is more
        taken = self._departures.take(room)
        self._has_users = self._has_users or bool(taken)
        return taken

    # what the connection tells

    def sent(self, kind: str) -> None:
        self._figures.sent[kind] += 1
        self._node.sent(self._now())

    def acknowledged(self) -> None:
        self._node.acknowledged(self._now())

    def returned(self, kind: str) -> None:
        self._figures.returned[kind] += 1
        self._has_users = True

    def give_back(self, loop: Loop) -> None:
        self._node.give_back(loop)

    def outbound_lost(self, session: Outbound, why: str) -> None:
        if session is self.outbound:
            self.outbound = None
            self._node.outbound_lost(why, self._now())
            self._act()

    # what whoever has USERs tells

    def _on_ready(self) -> None:
        self._has_users = True
        self.proceed()
