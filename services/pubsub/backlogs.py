"""Bound the output that waits in this process for subscribers that do not read fast enough (pubsub.md 3.6)."""

from __future__ import annotations

from typing import NamedTuple

from services.pubsub.subscriber import Subscriber

ALWAYS_BYTES = 64 << 10  # may wait for any subscriber, independently of others


class TurnLimits(NamedTuple):
    """Limits of one turn of a slow consumer, in octets."""

    room: int  # a turn begins while no more than this waits
    most: int  # about how much a turn sends; a longer line is sent in pieces


PLENTY = TurnLimits(64 << 10, 128 << 10)
SCARCE = TurnLimits(8 << 10, 24 << 10)  # with a line at the end of the turn not more than ALWAYS_BYTES


class Backlogs:
    """The output waiting for each subscriber, as of the last write to it or the last `refresh`."""

    def __init__(self, each: int, together: int) -> None:
        """each, together: bounds in octets."""
        self._each = each
        self._together = together
        self._known: dict[Subscriber, int] = {}
        self.total = 0

    def takes(self, subscriber: Subscriber, size: int) -> bool:
        """Return whether so much more may be written to a subscriber, and count it if so."""
        backlog = subscriber.wire.backlog()
        others = self.total - self._known.get(subscriber, 0)
        may_wait = backlog + size <= max(ALWAYS_BYTES, min(self._each, self._together - others))
        self._note(subscriber, backlog + size if may_wait else backlog)
        return may_wait

    def turn(self) -> TurnLimits:
        """Return the limits of a turn: smaller while too much waits in total."""
        return PLENTY if self.total < self._together else SCARCE

    def written(self, subscriber: Subscriber) -> None:
        """Update a subscriber's backlog after writing to it."""
        self._note(subscriber, subscriber.wire.backlog())

    def refresh(self) -> None:
        """Update all backlogs."""
        for subscriber in list(self._known):
            self._note(subscriber, subscriber.wire.backlog())

    def forget(self, subscriber: Subscriber) -> None:
        """Drop a subscriber that disconnected."""
        self._note(subscriber, 0)

    def _note(self, subscriber: Subscriber, backlog: int) -> None:
        self.total += backlog - self._known.get(subscriber, 0)
        if backlog:
            self._known[subscriber] = backlog
        else:
            self._known.pop(subscriber, None)
