"""What a node wants done by whoever owns the sockets (ring.md 3, 4)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from protos.ring.messages import TTL, Beacon, Loop

MAX_LOOPS = 256  # that wait for the successor; the oldest is dropped


@dataclass(frozen=True, slots=True)
class SendBeacon:
    """To everybody on the network."""

    beacon: Beacon


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect to a node. Answered by `Node.connected` or `Node.connect_failed`."""

    node: bytes
    service: bytes


@dataclass(frozen=True, slots=True)
class CloseOutbound:
    """Whatever there is of a connection to a successor. Not answered."""

    why: str


@dataclass(frozen=True, slots=True)
class CloseInbound:
    """One connection from a predecessor, or somebody who wanted to be one. Not answered."""

    link: int
    why: str


Action = SendBeacon | Dial | CloseOutbound | CloseInbound


class ActionQueue:
    """What the parts of one node have to say: actions at once, LOOPs when the link to the successor has room."""

    __slots__ = ("_actions", "_loops")

    def __init__(self) -> None:
        self._actions: list[Action] = []
        self._loops: OrderedDict[Loop, Loop] = OrderedDict()  # by what they say, whatever their TTL

    def do(self, action: Action) -> None:
        self._actions.append(action)

    def say(self, loop: Loop) -> None:
        """To the successor, once there is one. What waits already is not said twice, and lives as long as it may."""
        says = _says(loop)
        waiting = self._loops.pop(says, loop)
        if len(self._loops) == MAX_LOOPS:
            self._loops.popitem(last=False)
        self._loops[says] = max(waiting, loop, key=lambda one: one.ttl)

    def pass_on(self, loop: Loop) -> None:
        """The same for one of another node: with a lower TTL, and dropped where the next one would drop it (2.3)."""
        ttl = min(loop.ttl, TTL) - 1
        if ttl > 0:
            self.say(replace(loop, ttl=ttl))

    def say_again(self, loop: Loop) -> None:
        """Before all that waits, unless it has been said anew since."""
        says = _says(loop)
        if says not in self._loops and len(self._loops) < MAX_LOOPS:
            self._loops[says] = loop
            self._loops.move_to_end(says, last=False)

    def next_loop(self) -> Loop | None:
        return self._loops.popitem(last=False)[1] if self._loops else None

    def take_actions(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions


def _says(loop: Loop) -> Loop:
    return replace(loop, ttl=0)
