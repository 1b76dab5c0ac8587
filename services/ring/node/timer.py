"""The timer of a node, which also tolerates that the process was stopped for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from protos.ring import Node
from services.kit.net import Alarm

STALL_S = 1.0  # a timer this late means that the process was stopped: read what came meanwhile first
STALL_PAUSE_S = 0.05


class Timer:
    """Calls the node when something is due."""

    def __init__(self, loop: asyncio.AbstractEventLoop, node: Node, act: Callable[[], None]) -> None:
        """act: carries out what the node wants then."""
        self._loop = loop
        self._node = node
        self._act = act
        self._alarm = Alarm(loop, self.check)
        self._pause_until = 0.0  # nothing times out before, as the process was stopped

    def set(self) -> None:
        """Set the alarm again, after a possible change of the next deadline."""
        if (due := self._node.deadline()) is not None:
            self._alarm.set(due, self._loop.time())

    def check(self) -> None:
        """Call the node if something is due.

        Called by the alarm, and periodically, as an internal error may have lost the alarm.
        """
        now, due = self._loop.time(), self._node.deadline()
        if due is None:
            return
        if now < due:
            self._alarm.set(due, now)
        elif now < self._pause_until:
            self._alarm.set(self._pause_until, now)
        elif now - max(due, self._pause_until) > STALL_S:
            self._pause_until = now + STALL_PAUSE_S
            self._alarm.set(self._pause_until, now)
        else:
            self._node.on_time(now)
            self._act()

    def cancel(self) -> None:
        """Stop the alarm."""
        self._alarm.cancel()
