"""What a node wants done by whoever owns the sockets (ring.md 3, 4)."""

from __future__ import annotations

from collections import deque
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
        waiting = self._like(loop)
        if waiting is not None:
            self._loops.remove(waiting)
            loop = max(waiting, loop, key=lambda one: one.ttl)
        if len(self._loops) == MAX_LOOPS:
            self._loops.popleft()
        self._loops.append(loop)

    def pass_on(self, loop: Loop) -> None:
        """The same for one of another node: with a lower TTL, and dropped where the next one would drop it (2.3)."""
        ttl = min(loop.ttl, TTL) - 1
        if ttl > 0:
            self.say(replace(loop, ttl=ttl))

    def say_again(self, loop: Loop) -> None:
        """Before all that waits, unless it has been said anew since."""
        if self._like(loop) is None and len(self._loops) < MAX_LOOPS:
            self._loops.appendleft(loop)

    def next_loop(self) -> Loop | None:
        return self._loops.popleft() if self._loops else None

    def take_actions(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions

    def _like(self, loop: Loop) -> Loop | None:
        key = replace(loop, ttl=0)
        return next((waiting for waiting in self._loops if replace(waiting, ttl=0) == key), None)
