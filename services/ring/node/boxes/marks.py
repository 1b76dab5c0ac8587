"""Send a mark after this node's own messages, to learn which of them an inbox has kept (ring.md 5.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from functools import partial

from protos.ring import Relay
from services.ring.node.outgoing.outgoing import PASSED
from services.ring.node.outgoing.user_flow import OutgoingMessage
from services.ring.node.outgoing.writer import QueueWriter

PAUSE_S = 0.1  # minimum between two marks
LOST_S = 30.0  # after which a mark that left is taken for lost


class MarkPlace(Enum):
    """Where the last mark is."""

    STORE = "it waits for the successor"
    LINK = "it is sent and unanswered"
    GONE = "the successor has it, it is lost, or there is none"


class Marks:
    """The marks of one node: one is under way at a time, and none while no message may come back.

    Until a mark comes back, equal messages of others are taken off the ring: so a lost mark is followed by another. A
    mark that still waits here is not lost, however long there is no link: else marks would gather in the store.
    """

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._writer: QueueWriter | None = None
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None  # until the next mark
        self._mark = b""  # the one that has not come back
        self._where = MarkPlace.GONE

    def use(self, writer: QueueWriter) -> None:
        """Set the writer that queues marks; it is made after this object."""
        self._writer = writer

    def put_on(self, payload: bytes) -> None:
        """Note that this node begins a message, which cannot have come back yet."""
        self._relay.put_on(payload)
        if self._timer is None and self._where is MarkPlace.GONE:
            self._proceed(PAUSE_S)

    @property
    def are_wanted(self) -> bool:
        """True if a message of this node may still come back."""
        return self._relay.wants_mark

    def leave(self, messages: list[OutgoingMessage], are_all: bool) -> list[OutgoingMessage]:
        """Return these messages for the successor, a mark among them wrapped.

        are_all: the queue is empty behind them, as far as is known.
        """
        if not self._mark:
            return messages
        for place, message in enumerate(messages):
            if message.payload == self._mark:
                messages[place] = MarkMessage(message, partial(self._set_place, self._mark))
                self._set_place(self._mark, MarkPlace.LINK)
                return messages
        if are_all and self._where is MarkPlace.STORE:
            # another process of this name has sent it, or the queue was deleted
            self._set_place(self._mark, MarkPlace.GONE)
        return messages

    def came_back(self) -> None:
        """Note that the last mark has gone around."""
        self._mark, self._where = b"", MarkPlace.GONE
        self._proceed(PAUSE_S)

    def close(self) -> None:
        """Send no more marks."""
        self._writer = None
        self._stop_timer()

    def _proceed(self, after_s: float) -> None:
        """Send the next mark after `after_s`, if a message may still come back by then."""
        self._stop_timer()
        if self._writer is not None:
            self._timer = self._loop.call_later(after_s, self._put)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _put(self) -> None:
        self._timer = None
        if self._writer is None or not self._relay.wants_mark:
            return
        self._mark, self._where = self._relay.mark(), MarkPlace.STORE
        self._writer.put([self._mark], PASSED, partial(self._stored, self._mark))

    def _stored(self, mark: bytes, is_stored: bool) -> None:
        if not is_stored:
            self._set_place(mark, MarkPlace.GONE)

    def _set_place(self, mark: bytes, where: MarkPlace) -> None:
        if mark != self._mark:
            return  # it came back, or a newer mark is under way
        self._where = where
        if where is MarkPlace.GONE:
            self._proceed(LOST_S)
        else:
            self._stop_timer()


class MarkMessage:
    """A mark on its link, as an OutgoingMessage."""

    def __init__(self, message: OutgoingMessage, set_place: Callable[[MarkPlace], None]) -> None:
        self.payload = message.payload
        self._parcel = message
        self._set_place = set_place

    def acknowledged(self) -> None:
        """Note that the successor has the mark."""
        self._parcel.acknowledged()
        self._set_place(MarkPlace.GONE)

    def returned(self) -> None:
        """Note that the mark waits in the store again."""
        self._parcel.returned()
        self._set_place(MarkPlace.STORE)
