"""What waits in this process for subscribers that do not read fast enough, and how much of it there may be (3.6)."""

from __future__ import annotations

from typing import NamedTuple

from services.pubsub.subscriber import Subscriber

ALWAYS_BYTES = 64 << 10  # that one subscriber may have waiting, whatever the others do


class TurnLimits(NamedTuple):
    """Of somebody who is served from the log, in octets."""

    room: int  # who has no more than this waiting is sent more
    most: int  # and then about so much: a line that is longer goes in pieces


PLENTY = TurnLimits(64 << 10, 128 << 10)
SCARCE = TurnLimits(8 << 10, 24 << 10)  # with a line at the end of the turn not more than ALWAYS_BYTES


class Backlogs:
    """Known as of the last time that somebody was written to, or that all were looked at."""

    def __init__(self, each: int, together: int) -> None:
        """each, together: octets."""
        self._each = each
        self._together = together
        self._known: dict[Subscriber, int] = {}
        self.total = 0

    def takes(self, subscriber: Subscriber, size: int) -> bool:
        """Whether he may be written so much more; from then on it is counted as his."""
        backlog = subscriber.wire.backlog()
        others = self.total - self._known.get(subscriber, 0)
        may_wait = backlog + size <= max(ALWAYS_BYTES, min(self._each, self._together - others))
        self._note(subscriber, backlog + size if may_wait else backlog)
        return may_wait

    def turn(self) -> TurnLimits:
        """What each that is behind may be sent at a time: little, where all together have too much waiting."""
        return PLENTY if self.total < self._together else SCARCE

    def written(self, subscriber: Subscriber) -> None:
        """Somebody who is behind was sent something."""
        self._note(subscriber, subscriber.wire.backlog())

    def refresh(self) -> None:
        """What has been sent since is not there any more."""
        for subscriber in list(self._known):
            self._note(subscriber, subscriber.wire.backlog())

    def forget(self, subscriber: Subscriber) -> None:
        self._note(subscriber, 0)

    def _note(self, subscriber: Subscriber, backlog: int) -> None:
        self.total += backlog - self._known.get(subscriber, 0)
        if backlog:
            self._known[subscriber] = backlog
        else:
            self._known.pop(subscriber, None)
