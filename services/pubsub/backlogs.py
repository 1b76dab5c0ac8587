"""What waits in this process for subscribers that do not read fast enough, and how much of it there may be (3.6)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from services.pubsub.subscriber import Subscriber

ALWAYS_BYTES = 64 << 10  # that one subscriber may have waiting, whatever the others do
STALLED_S = 5.0  # who takes nothing for so long may have to go, if others wait for room for a long line
LOOK_S = 0.1  # between two looks at those who hold long lines

Stalled = Callable[[Subscriber, float], None]


class Turn(NamedTuple):
    """Of somebody who is served from the log, in octets."""

    room: int  # who has less than this waiting is sent more
    most: int  # before the others have their turn; a line that is longer is a long one


PLENTY = Turn(64 << 10, 128 << 10)
SCARCE = Turn(16 << 10, 32 << 10)  # together with a line that is not long, ALWAYS_BYTES and a little


@dataclass(slots=True)
class _LongLine:
    octets: int  # of it that may still wait
    backlog: int  # of the subscriber, when it last shrank
    moved: float  # and when that was, on the monotonic clock


class Backlogs:
    """Known as of the last time that somebody was written to, or that all were looked at.

    Long lines have a room of their own, as large as that for all together: who reads never waits for others' junk.
    """

    def __init__(self, each: int, together: int, stalled: Stalled) -> None:
        """each, together: octets. stalled(subscriber, seconds): it has taken nothing for so long, and has to go."""
        self._each = each
        self._together = together
        self._stalled = stalled
        self._known: dict[Subscriber, int] = {}
        self.total = 0
        self._long: dict[Subscriber, _LongLine] = {}
        self._long_total = 0
        self._looked = 0.0

    def takes(self, subscriber: Subscriber, size: int) -> bool:
        """Whether he may be written so much more; from then on it is counted as his."""
        backlog = subscriber.wire.backlog()
        others = self.total - self._known.get(subscriber, 0)
        may_wait = backlog + size <= max(ALWAYS_BYTES, min(self._each, self._together - others))
        self._note(subscriber, backlog + size if may_wait else backlog)
        return may_wait

    def turn(self) -> Turn:
        """What each that is behind may be sent at a time: little, where all together have too much waiting."""
        return PLENTY if self.total < self._together else SCARCE

    def written(self, subscriber: Subscriber) -> None:
        """Somebody who is behind was sent something."""
        self._note(subscriber, subscriber.wire.backlog())

    def takes_line(self, subscriber: Subscriber, size: int) -> bool:
        """Whether a long line may be written to somebody who has room: then its place is kept for it.

        One always may. Where there is no place, whoever has taken nothing of his for longest makes way.
        """
        now = time.monotonic()
        self._forget_line(subscriber)  # he has room: what he had has left
        if self._is_too_long(size) and now - self._looked >= LOOK_S:
            self._looked = now
            self._look(now)
            if self._is_too_long(size):
                self._close_the_slowest(now)
        if self._is_too_long(size):
            return False
        self._long_total += size
        backlog = subscriber.wire.backlog() + size
        self._long[subscriber] = _LongLine(size, backlog, now)
        self._note(subscriber, backlog)
        return True

    def refresh(self) -> None:
        """What has been sent since is not there any more."""
        for subscriber in list(self._known):
            self._note(subscriber, subscriber.wire.backlog())

    def forget(self, subscriber: Subscriber) -> None:
        self._note(subscriber, 0)
        self._forget_line(subscriber)

    # inside

    def _is_too_long(self, size: int) -> bool:
        return bool(self._long) and self._long_total + size > self._together

    def _look(self, now: float) -> None:
        """How much is left of the long lines."""
        for subscriber, line in list(self._long.items()):
            backlog = subscriber.wire.backlog()
            if backlog < line.backlog:
                line.backlog, line.moved = backlog, now
            if backlog < line.octets:
                self._long_total -= line.octets - backlog
                line.octets = backlog
            if not backlog:
                self._forget_line(subscriber)

    def _close_the_slowest(self, now: float) -> None:
        slowest = min(self._long, key=lambda each: self._long[each].moved)
        stands_s = now - self._long[slowest].moved
        if stands_s >= STALLED_S:
            self.forget(slowest)
            self._stalled(slowest, stands_s)

    def _forget_line(self, subscriber: Subscriber) -> None:
        line = self._long.pop(subscriber, None)
        if line is not None:
            self._long_total -= line.octets

    def _note(self, subscriber: Subscriber, backlog: int) -> None:
        self.total += backlog - self._known.get(subscriber, 0)
        if backlog:
            self._known[subscriber] = backlog
        else:
            self._known.pop(subscriber, None)
