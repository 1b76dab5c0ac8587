"""Puts a mark behind what this node has put on the ring, so that it learns what an inbox has kept (ring.md 5.5)."""

from __future__ import annotations

import asyncio

from protos.ring import Relay
from services.ring.node.outgoing import PASSED
from services.ring.node.storing import Storing

PAUSE_S = 0.1  # between two of them at least
LOST_S = 30.0  # one that has not come back by then is not waited for


class Marks:
    """One is on its way at a time, and none while nothing is that may come back."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._storing: Storing | None = None
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None  # until the next is put on, or this one is lost

    def use(self, storing: Storing) -> None:
        """What queues them: it cannot be made before what tells of each message that is put on."""
        self._storing = storing

    def put_on(self, payload: bytes) -> None:
        """This node begins a message, which cannot have come back yet."""
        self._relay.put_on(payload)
        if self._timer is None:
            self._proceed()

    @property
    def are_wanted(self) -> bool:
        return self._relay.wants_mark

    def came_back(self) -> None:
        self.close()
        self._proceed()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _proceed(self) -> None:
        if self._relay.wants_mark:
            self._timer = self._loop.call_later(PAUSE_S, self._mark)

    def _mark(self) -> None:
        assert self._storing is not None
        self._timer = self._loop.call_later(LOST_S, self.close)
        self._storing.put([self._relay.mark()], PASSED, _ignore)


def _ignore(_: bool) -> None:
    """Not stored: it is lost."""
