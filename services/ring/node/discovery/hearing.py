"""What a beacon that was heard means to a node: its own group's go to `protos.ring.Node`, the others are counted."""

from __future__ import annotations

import logging
from collections.abc import Callable

from protos.ring import Beacon, Find, Node, Open

log = logging.getLogger(__name__)

ECHO_S = 10.0  # so long after it was sent a beacon of ours may come back, from several networks
ECHO_LOOKS = 20  # and at least for so many turns: if the process stands still, it waits at a socket


class Echoes:
    """Whether a beacon in the node's own name may be one that it has sent itself (1.2)."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._looks = 0
        self._last = dict.fromkeys((Open, Find), (now(), 0))  # when one was sent last, and how many looks ago

    def sent(self, beacon: Beacon) -> None:
        """To one of those that beacons go to."""
        self._last[type(beacon)] = self._now(), self._looks

    def look(self) -> None:
        """Now and then: a turn of this process, in which what waits at its sockets is read."""
        self._looks += 1

    def may_have(self, beacon: Beacon) -> bool:
        at, looks = self._last[type(beacon)]
        return self._now() - at <= ECHO_S or self._looks - looks <= ECHO_LOOKS


class Hearing:
    def __init__(
        self,
        node: Node,
        service: bytes,
        now: Callable[[], float],
        met: Callable[[str], None],
        act: Callable[[], None],
    ) -> None:
        """service: as the node's own OPENs tell it; met: told where another node is; act: does what the node wants."""
        self.is_stopping = False
        self.echoes = Echoes(now)
        self._node = node
        self._service = service
        self._now = now
        self._met = met
        self._act = act
        self._is_name_told = False

    def heard(self, beacon: Beacon, source: str) -> str | None:
        """source: the address that it came from. Why it is ignored, or None."""
        if beacon.group != self._node.group:
            return "other_group"
        if self.is_stopping:
            return "stopping"
        is_mine = isinstance(beacon, Open) and beacon.node == self._node.name
        if self._is_of_a_namesake(beacon):
            self._tell_same_name(beacon)
            return "same_name"
        if _name(beacon) != self._node.name:
            self._met(source)  # first: what the node says to it goes there, too
        counts = self._node.beacon(beacon, self._now())
        self._act()
        return "own" if is_mine or not counts else None

    def _is_of_a_namesake(self, beacon: Beacon) -> bool:
        """In our name, and not ours. While we are away another process may be the node of our name (4.7)."""
        if _name(beacon) != self._node.name:
            return False
        if isinstance(beacon, Open) and beacon.service != self._service:
            return True
        return not self._node.is_away and not self.echoes.may_have(beacon)

    def _tell_same_name(self, beacon: Beacon) -> None:
        """Once: with two nodes of one name no ring works (1.2)."""
        if not self._is_name_told:
            self._is_name_told = True
            fields = {"action": "ring_same_name", "node": _shown(self._node.name)}
            if isinstance(beacon, Open):
                fields["service"] = _shown(beacon.service)
            text = "another node calls itself %s, too: give each its own edges.ring.node.name"
            log.error(text, _shown(self._node.name), extra=fields)


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _name(beacon: Beacon) -> bytes:
    """Whose it is: a FIND is its leader's own."""
    return beacon.node if isinstance(beacon, Open) else beacon.leader
