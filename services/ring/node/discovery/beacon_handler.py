"""Handle received beacons: pass those of the node's own group to `protos.ring.Node`, count the others."""

from __future__ import annotations

import logging
from collections.abc import Callable

from protos.ring import Beacon, Find, Node, Open

log = logging.getLogger(__name__)

ECHO_S = 10.0  # a beacon of ours may come back for this long, from several networks
ECHO_TICKS = 20  # and at least for this many turns: while the process is stopped, it waits at a socket


class Echoes:
    """Recognises beacons in the node's own name that it may have sent itself (1.2)."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._ticks = 0
        self._last = dict.fromkeys((Open, Find), (now(), 0))  # time and turn of the last one sent

    def sent(self, beacon: Beacon) -> None:
        """Note that a beacon was sent."""
        self._last[type(beacon)] = self._now(), self._ticks

    def tick(self) -> None:
        """Count a turn of this process, in which it reads what waits at its sockets."""
        self._ticks += 1

    def may_have(self, beacon: Beacon) -> bool:
        """Return whether the beacon may be one that this node sent."""
        at, ticks = self._last[type(beacon)]
        return self._now() - at <= ECHO_S or self._ticks - ticks <= ECHO_TICKS


class BeaconHandler:
    """Decides which beacons count."""

    def __init__(
        self,
        node: Node,
        service: bytes,
        now: Callable[[], float],
        met: Callable[[str], None],
        act: Callable[[], None],
    ) -> None:
        """service: as in the node's own OPENs. met: told where another node is. act: does what the node wants."""
        self.is_stopping = False
        self.echoes = Echoes(now)
        self._node = node
        self._service = service
        self._now = now
        self._met = met
        self._act = act
        self._is_logged = False

    def heard(self, beacon: Beacon, source: str) -> str | None:
        """Handle a beacon from the address `source`; return why it is ignored, or None."""
        if beacon.group != self._node.group:
            return "other_group"
        if self.is_stopping:
            return "stopping"
        is_mine = isinstance(beacon, Open) and beacon.node == self._node.name
        if self._is_of_a_duplicate(beacon):
            self._log_same_name(beacon)
            return "same_name"
        if _name(beacon) != self._node.name:
            self._met(source)  # first: beacons that the node sends in reply go there, too
        counts = self._node.beacon(beacon, self._now())
        self._act()
        return "own" if is_mine or not counts else None

    def _is_of_a_duplicate(self, beacon: Beacon) -> bool:
        """Return whether another node sent it in our name.

        While the node is away another process may be the node of this name (4.7).
        """
        if _name(beacon) != self._node.name:
            return False
        if isinstance(beacon, Open) and beacon.service != self._service:
            return True
        return not self._node.is_away and not self.echoes.may_have(beacon)

    def _log_same_name(self, beacon: Beacon) -> None:
        """Log once that another node has this name: with two nodes of one name no ring works (1.2)."""
        if not self._is_logged:
            self._is_logged = True
            fields = {"action": "ring_same_name", "node": _shown(self._node.name)}
            if isinstance(beacon, Open):
                fields["service"] = _shown(beacon.service)
            text = "another node has the same name, %s, so no ring can work: give each its own edges.ring.node.name"
            log.error(text, _shown(self._node.name), extra=fields)


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _name(beacon: Beacon) -> bytes:
    """Return the name of the sender; a FIND has only the name of its leader, which sends it."""
    return beacon.node if isinstance(beacon, Open) else beacon.leader
