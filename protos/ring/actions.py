"""The actions that a node wants from the owner of its sockets (ring.md 3, 4)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from protos.ring.messages import TTL, Beacon, Loop

MAX_LOOPS = 256  # waiting for the successor; the oldest is dropped


@dataclass(frozen=True, slots=True)
class SendBeacon:
    """Send a beacon to all addresses."""

    beacon: Beacon  # to be encoded by `encode_beacon`


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect to a node. Answered by `Node.connected` or `Node.connect_failed`."""

    node: bytes  # its host part is what to connect to (`host_of`)
    service: bytes  # the TCP port in decimal, or the name of a service


@dataclass(frozen=True, slots=True)
class CloseOutbound:
    """Close the connection to a successor, or the attempt to connect. Not answered."""

    why: str  # for the log


@dataclass(frozen=True, slots=True)
class CloseInbound:
    """Close one connection from a predecessor, or from a node that wanted to be one. Not answered."""

    link: int  # the number given to `Node.accepted`
    why: str  # for the log


Action = SendBeacon | Dial | CloseOutbound | CloseInbound  # what `Node.take_actions` returns


class ActionQueue:
    """The output of one node: actions at once, LOOPs when the link to the successor has room."""

    __slots__ = ("_actions", "_loops")

    def __init__(self) -> None:
        self._actions: list[Action] = []
        self._loops: OrderedDict[Loop, Loop] = OrderedDict()  # by content without TTL

    def do(self, action: Action) -> None:
        """Add an action."""
        self._actions.append(action)

    def send(self, loop: Loop) -> None:
        """Send a LOOP to the successor, once there is one.

        A LOOP that waits already is not added again; it keeps the larger TTL.
        """
        key = _without_ttl(loop)
        waiting = self._loops.pop(key, loop)
        if len(self._loops) == MAX_LOOPS:
            self._loops.popitem(last=False)
        self._loops[key] = max(waiting, loop, key=lambda one: one.ttl)

    def forward(self, loop: Loop) -> None:
        """Forward another node's LOOP with a lower TTL, or drop it where the next node would (2.3)."""
        ttl = min(loop.ttl, TTL) - 1
        if ttl > 0:
            self.send(replace(loop, ttl=ttl))

    def resend(self, loop: Loop) -> None:
        """Put an unanswered LOOP before all others, unless it was sent again since."""
        key = _without_ttl(loop)
        if key not in self._loops and len(self._loops) < MAX_LOOPS:
            self._loops[key] = loop
            self._loops.move_to_end(key, last=False)

    def next_loop(self) -> Loop | None:
        """Remove and return the next LOOP for the successor."""
        return self._loops.popitem(last=False)[1] if self._loops else None

    def take_actions(self) -> list[Action]:
        """Remove and return all actions."""
        actions, self._actions = self._actions, []
        return actions


def _without_ttl(loop: Loop) -> Loop:
    return replace(loop, ttl=0)
