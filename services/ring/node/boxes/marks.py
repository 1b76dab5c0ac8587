"""Puts a mark behind what this node has put on the ring, so that it learns what an inbox has kept (ring.md 5.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from functools import partial

from protos.ring import Relay
from services.ring.node.outgoing.outgoing import PASSED
from services.ring.node.outgoing.passage import Parcel
from services.ring.node.outgoing.storing import Storing

PAUSE_S = 0.1  # between two of them at least
LOST_S = 30.0  # one that has been gone for so long is not waited for


class Where(Enum):
    """The last mark."""

    STORE = "it waits for the successor"
    LINK = "it is sent, and not answered"
    GONE = "the successor has it, or nobody; or there is none"


class Marks:
    """One is on its way at a time, and none while nothing is that may come back.

    Until one comes back, equal messages of others are taken off: so one that is lost is followed by another. One that
    still waits here is not lost, however long there is no link: else they would gather in the store.
    """

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._storing: Storing | None = None
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None  # until the next is put on
        self._mark = b""  # the one that has not come back
        self._where = Where.GONE

    def use(self, storing: Storing) -> None:
        """What queues them: it cannot be made before what tells of each message that is put on."""
        self._storing = storing

    def put_on(self, payload: bytes) -> None:
        """This node begins a message, which cannot have come back yet."""
        self._relay.put_on(payload)
        if self._timer is None and self._where is Where.GONE:
            self._proceed(PAUSE_S)

    @property
    def are_wanted(self) -> bool:
        return self._relay.wants_mark

    def leave(self, parcels: list[Parcel], are_all: bool) -> list[Parcel]:
        """These go to the successor, in what is returned. are_all: nothing else waits for him, as far as is known."""
        if not self._mark:
            return parcels
        for place, parcel in enumerate(parcels):
            if parcel.payload == self._mark:
                parcels[place] = Leaving(parcel, partial(self._moved, self._mark))
                self._moved(self._mark, Where.LINK)
                return parcels
        if are_all and self._where is Where.STORE:
            # another process of this name has sent it, or somebody has deleted the queue
            self._moved(self._mark, Where.GONE)
        return parcels

    def came_back(self) -> None:
        self._mark, self._where = b"", Where.GONE
        self._proceed(PAUSE_S)

    def close(self) -> None:
        self._storing = None
        self._stop_timer()

    def _proceed(self, after_s: float) -> None:
        """With the next one, if anything may still come back by then."""
        self._stop_timer()
        if self._storing is not None:
            self._timer = self._loop.call_later(after_s, self._put)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _put(self) -> None:
        self._timer = None
        if self._storing is None or not self._relay.wants_mark:
            return
        self._mark, self._where = self._relay.mark(), Where.STORE
        self._storing.put([self._mark], PASSED, partial(self._stored, self._mark))

    def _stored(self, mark: bytes, is_stored: bool) -> None:
        if not is_stored:
            self._moved(mark, Where.GONE)

    def _moved(self, mark: bytes, where: Where) -> None:
        if mark != self._mark:
            return  # it came back, or another one is waited for
        self._where = where
        if where is Where.GONE:
            self._proceed(LOST_S)
        else:
            self._stop_timer()


class Leaving:
    """A mark on its link, as a Parcel (passage.py)."""

    def __init__(self, parcel: Parcel, moved: Callable[[Where], None]) -> None:
        self.payload = parcel.payload
        self._parcel = parcel
        self._moved = moved

    def acknowledged(self) -> None:
        self._parcel.acknowledged()
        self._moved(Where.GONE)

    def returned(self) -> None:
        self._parcel.returned()
        self._moved(Where.STORE)
