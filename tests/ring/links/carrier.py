"""A carrier of USER messages for these tests.

It has lists in memory and keeps the contract of `passage` (ring.md 2.2, 4.5).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class OneParcel:
    """A parcel of a carrier; it is settled or returned exactly once."""

    def __init__(self, carrier: Carrier, payload: bytes) -> None:
        self.payload = payload
        self._carrier: Carrier | None = carrier

    def acknowledged(self) -> None:
        self._end().acknowledged.append(self.payload)

    def returned(self) -> None:
        carrier = self._end()
        carrier.returned.append(self.payload)
        carrier.waiting.appendleft(self.payload)

    def _end(self) -> Carrier:
        assert self._carrier is not None, "a parcel was settled or returned twice"
        carrier, self._carrier = self._carrier, None
        return carrier


class Carrier:
    """Both ends of the passage. `passes_on`: received messages are sent on once they are safe, unless they are ours."""

    def __init__(self, passes_on: bool = False) -> None:
        self.arrived: list[bytes] = []
        self.waiting: deque[bytes] = deque()
        self.acknowledged: list[bytes] = []
        self.returned: list[bytes] = []
        self.asked: list[int] = []  # the free room at each call
        self.is_held = False  # the store is slow: no message becomes safe
        self._passes_on = passes_on
        self._own: set[bytes] = set()
        self._unsafe: deque[Callable[[], None]] = deque()
        self._ready: Callable[[], None] = lambda: None

    def put(self, *payloads: bytes) -> None:
        self._own.update(payloads)
        self.waiting.extend(payloads)
        self._ready()

    def release(self) -> None:
        """Make the store fast again."""
        self.is_held = False
        while self._unsafe:
            self._unsafe.popleft()()

    # UserSink

    def received(self, payload: bytes, safe: Callable[[], None]) -> None:
        self.arrived.append(payload)
        if self._passes_on and payload not in self._own:
            self.waiting.append(payload)
            self._ready()
        self._unsafe.append(safe)
        asyncio.get_running_loop().call_soon(self._save)

    def _save(self) -> None:
        if not self.is_held:
            self.release()

    # UserSource

    def take(self, room: int) -> list[OneParcel]:
        assert room > 0
        self.asked.append(room)
        return [OneParcel(self, self.waiting.popleft()) for _ in range(min(room, len(self.waiting)))]

    def on_ready(self, callback: Callable[[], None]) -> None:
        self._ready = callback
