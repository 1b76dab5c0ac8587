"""The single timer of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

MIN_DELAY_S = 0.001  # the loop counts in milliseconds; a delay of 0 would run before the next poll for input


class Alarm:
    """A timer that calls `action` at the requested time or earlier.

    Postponing costs nothing: the old timer fires, and the action checks the time and sets the alarm again.
    """

    __slots__ = ("_action", "_at", "_handle", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> None:
        self._loop = loop
        self._action = action
        self._handle: asyncio.TimerHandle | None = None
        self._at = 0.0

    def set(self, due: float, now: float) -> None:
        """Run the action at `due` (loop time) or earlier."""
        if self._handle is not None:
            if self._at <= due:
                return
            self._handle.cancel()
        self._at = due
        self._handle = self._loop.call_later(max(due - now, MIN_DELAY_S), self._ring)

    def cancel(self) -> None:
        """Drop the pending call, if there is one."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _ring(self) -> None:
        self._handle = None
        self._action()
