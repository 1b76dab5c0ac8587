"""Virtual time with ordered events."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

Event = tuple[float, int, Callable[..., None], tuple[Any, ...]]


class Clock:
    """A clock in seconds from 0. Events at the same time happen in the order in which they were planned."""

    __slots__ = ("_count", "_events", "events_done", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self.events_done = 0
        self._count = 0
        self._events: list[Event] = []

    def at(self, time: float, call: Callable[..., None], *args: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (time if time > self.now else self.now, self._count, call, args))

    def after(self, delay: float, call: Callable[..., None], *args: Any) -> None:
        self.at(self.now + delay, call, *args)

    def run_until(self, end: float) -> None:
        events = self._events
        while events and events[0][0] <= end:
            self.now, _, call, args = heapq.heappop(events)
            self.events_done += 1
            call(*args)
        self.now = end
