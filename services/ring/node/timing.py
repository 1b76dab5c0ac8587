"""The timer of a node: it is told what is due, also when the process has stood still meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from protos.ring import Node
from services.kit.net import Alarm

STALL_S = 1.0  # so late a timer means that our process stood still: what came meanwhile is read first
STALL_PAUSE_S = 0.05


class Timing:
    def __init__(self, loop: asyncio.AbstractEventLoop, node: Node, act: Callable[[], None]) -> None:
        """act: does what the node wants then."""
        self._loop = loop
        self._node = node
        self._act = act
        self._alarm = Alarm(loop, self.look)
        self._pause_until = 0.0  # nothing is judged before, as the process stood still

    def set(self) -> None:
        """After whatever may have changed what is due."""
        if (due := self._node.deadline()) is not None:
            self._alarm.set(due, self._loop.time())

    def look(self) -> None:
        """Whether something is due: when the alarm rings, and now and then, as one may be lost in a fault of ours."""
        now, due = self._loop.time(), self._node.deadline()
        if due is None:
            return
        if now < due:
            self._alarm.set(due, now)
        elif now < self._pause_until:  # whoever else looks
            self._alarm.set(self._pause_until, now)
        elif now - max(due, self._pause_until) > STALL_S:
            self._pause_until = now + STALL_PAUSE_S
            self._alarm.set(self._pause_until, now)
        else:
            self._node.on_time(now)
            self._act()

    def cancel(self) -> None:
        self._alarm.cancel()
