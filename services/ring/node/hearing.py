"""What a beacon that was heard means to a node: its own group's go to `protos.ring.Node`, the others are counted."""

from __future__ import annotations

import logging
from collections.abc import Callable

from protos.ring import Beacon, Node, Open

log = logging.getLogger(__name__)


class Hearing:
    def __init__(self, node: Node, service: bytes, now: Callable[[], float], act: Callable[[], None]) -> None:
        """service: as the node's own OPENs tell it; act: does what the node wants."""
        self.is_stopping = False
        self._node = node
        self._service = service
        self._now = now
        self._act = act
        self._is_name_told = False

    def heard(self, beacon: Beacon) -> str | None:
        """Why it is ignored, or None."""
        if beacon.group != self._node.group:
            return "other_group"
        if self.is_stopping:
            return "stopping"
        is_mine = isinstance(beacon, Open) and beacon.node == self._node.name
        if isinstance(beacon, Open) and is_mine and beacon.service != self._service:
            self._tell_same_name(beacon.service)
            return "same_name"
        counts = self._node.beacon(beacon, self._now())
        self._act()
        return "own" if is_mine or not counts else None

    def _tell_same_name(self, service: bytes) -> None:
        """Once: with two nodes of one name no ring works (1.2)."""
        if not self._is_name_told:
            self._is_name_told = True
            fields = {"action": "ring_same_name", "node": _shown(self._node.name), "service": _shown(service)}
            text = "another node calls itself %s, too: give each its own edges.ring.node.name"
            log.error(text, _shown(self._node.name), extra=fields)


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
