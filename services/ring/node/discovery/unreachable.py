"""Warn about nodes that others cannot connect to: the ring stays open until they can (ring.md 3.6)."""

from __future__ import annotations

import logging

from protos.ring import HeadState, Node, TailState
from protos.ring.lru import LruMap

log = logging.getLogger(__name__)

REMEMBERED = 1000  # nodes
VAIN_DIALS = 5  # of one node in a row: more than a start or stop causes
TICK_S = 1.0  # longest time counted per tick: a stopped process sends no beacons
WITHOUT = TailState.OPEN, TailState.TRIED


class Unreachable:
    """Logs each unreachable node once, and again after it was reachable in between."""

    def __init__(self, node: Node, alone_s: float) -> None:
        self._node = node
        self._alone_s = alone_s
        self._ticked_at: float | None = None
        self._called_s = 0.0  # time with a successor and without a predecessor
        self._failed: LruMap[int] = LruMap(REMEMBERED)  # failed dials in a row by node

    def tick(self, now: float) -> None:
        """Check whether this node has had a successor and no predecessor for too long."""
        passed_s = now - (now if self._ticked_at is None else self._ticked_at)
        self._ticked_at = now
        was_logged = self._called_s >= self._alone_s
        if self._node.tail.state not in WITHOUT:
            self._called_s = 0.0
        elif self._node.head.state is HeadState.LINKED:  # its network works, one way
            self._called_s += min(passed_s, TICK_S)
            if self._called_s >= self._alone_s and not was_logged:
                self._log_this_node()

    def _log_this_node(self) -> None:
        name = _shown(self._node.name)
        text = (
            "this node, %s, has had a successor but no predecessor for %g s: the ring cannot close; check that other "
            "nodes can reach this host and the listener's port: edges.ring.node.advertise, firewalls"
        )
        log.warning(text, name, self._alone_s, extra={"action": "ring_unreachable", "node": name})

    def reached(self, node: bytes) -> None:
        """Note that a node was connected to."""
        self._failed.pop(node)

    def failed(self, node: bytes) -> None:
        """Note that a node announced itself and could not be connected to."""
        times = (self._failed.get(node) or 0) + 1
        self._failed.put(node, times)
        if times == VAIN_DIALS:
            name = _shown(node)
            text = (
                "%s wants a predecessor and could not be reached %d times in a row: the ring cannot close while it is "
                "there; see the `ring_dial` log lines, and check its edges.ring.node.advertise"
            )
            log.warning(text, name, times, extra={"action": "ring_unreached", "node": name})


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
