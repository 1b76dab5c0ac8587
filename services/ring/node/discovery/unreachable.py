"""Tells the operator of nodes that others cannot connect to: until they can, the ring stays open (ring.md 3.6)."""

from __future__ import annotations

import logging

from protos.ring import HeadState, Node, TailState
from protos.ring.recent import Recent

log = logging.getLogger(__name__)

REMEMBERED = 1000  # nodes
VAIN_DIALS = 5  # of one node in a row: more than a start or an end makes
LOOK_S = 1.0  # at least so often it is looked; a process that stood still has called nobody meanwhile
WITHOUT = TailState.OPEN, TailState.TRIED


class Unreachable:
    """Each is told once, and again once it was over."""

    def __init__(self, node: Node, alone_s: float) -> None:
        self._node = node
        self._alone_s = alone_s
        self._looked_at: float | None = None
        self._called_s = 0.0  # so long with a successor and without a predecessor
        self._failed: Recent[int] = Recent(REMEMBERED)  # by node: dials in a row

    # this node

    def look(self, now: float) -> None:
        """Now and then."""
        passed_s = now - (now if self._looked_at is None else self._looked_at)
        self._looked_at = now
        was_told = self._called_s >= self._alone_s
        if self._node.tail.state not in WITHOUT:
            self._called_s = 0.0
        elif self._node.head.state is HeadState.LINKED:  # its network works, one way
            self._called_s += min(passed_s, LOOK_S)
            if self._called_s >= self._alone_s and not was_told:
                self._tell_of_this()

    def _tell_of_this(self) -> None:
        name = _shown(self._node.name)
        text = (
            "this node, %s, has a successor and calls for a predecessor, and nobody has come for %g s: the ring cannot "
            "close; see that others reach that host, and the listener's port: edges.ring.node.advertise, a firewall"
        )
        log.warning(text, name, self._alone_s, extra={"action": "ring_unreachable", "node": name})

    # others

    def reached(self, node: bytes) -> None:
        self._failed.pop(node)

    def failed(self, node: bytes) -> None:
        """It called, and could not be connected to."""
        times = (self._failed.get(node) or 0) + 1
        self._failed.put(node, times)
        if times == VAIN_DIALS:
            name = _shown(node)
            text = (
                "%s calls for a predecessor and cannot be reached, %d times in a row: the ring cannot close while it "
                "is there; `ring_dial` lines say why, its edges.ring.node.advertise says where it is"
            )
            log.warning(text, name, times, extra={"action": "ring_unreached", "node": name})


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
