"""What a node wants done by whoever owns the sockets (ring.md 3, 4)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from protos.ring.messages import Beacon, Loop

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


class Orders:
    """What the parts of one node have to say: actions at once, LOOPs when the link to the successor has room."""

    __slots__ = ("_actions", "_loops")

    def __init__(self) -> None:
        self._actions: list[Action] = []
        self._loops: deque[Loop] = deque()

    def do(self, action: Action) -> None:
        self._actions.append(action)

    def say(self, loop: Loop) -> None:
        """To the successor, once there is one. What waits already is not said twice, and lives as long as it may."""
        for waiting in self._loops:
            if replace(waiting, ttl=0) == replace(loop, ttl=0):
                self._loops.remove(waiting)
                loop = max(waiting, loop, key=lambda one: one.ttl)
                break
        if len(self._loops) == MAX_LOOPS:
            self._loops.popleft()
        self._loops.append(loop)

    def say_first(self, loop: Loop) -> None:
        """Before all that waits."""
        self._loops.appendleft(loop)

    def next_loop(self) -> Loop | None:
        return self._loops.popleft() if self._loops else None

    def take_actions(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions
