"""Which queues have a name in metrics: so many, the first that are heard of, all others are `_other`.

Prometheus keeps a series for each name, so their number is bounded, whatever clients make. Where there is none left, a
new queue gets that of one of which nobody wanted anything for `IDLE_S`: else queues that come and go, as those of one
session each, would have all names for ever. While there is room a name is kept, as series that begin anew say less.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext

from services.kit.metrics.shared_names import SharedNames

OTHER = "_other"
IDLE_S = 900.0  # of which nothing was heard for so long, its name may be another's
FRESH_S = IDLE_S / 2  # nobody gives it back before a stamp tells that it was used again
STAMP_S = 60.0  # how often a worker tells the others which names it used
PART = 10  # of all names this part, at most, is given back at a time: whoever needs one will soon need more


def label_of(name: str) -> str:
    """A queue may have any octets for a name; Prometheus takes UTF-8 alone. Two that look the same are summed up."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class QueueNames:
    """`shared`: what workers agree by; None for a process of its own."""

    def __init__(
        self, most: int, shared: SharedNames | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """clock: the same for all workers."""
        self._most = most
        self._shared = shared
        self._clock = clock
        self._used: dict[str, float] = {}  # when somebody last used each name, as far as is known here
        self._full_until = -math.inf  # no name is idle before
        self._stamped_at = clock()

    def label(self, name: str) -> str:
        """The value of the label `queue`, which is used now."""
        label, now = label_of(name), self._clock()
        used = self._used.get(label)
        # one that was idle for long may be another's by now, if workers have to agree
        if used is not None and (self._shared is None or now - used < FRESH_S):
            self._used[label] = now
            return label
        if used is None and now < self._full_until:
            return OTHER
        try:
            with nullcontext() if self._shared is None else self._shared.locked():
                self._catch_up()
                return self._name(label, now)
        except OSError:  # no descriptor, no room: the others are asked the next time
            if used is None:
                self._used.pop(label, None)
                return OTHER
            self._used[label] = used
            return label

    def has(self, label: str) -> bool:
        """Whether it is a name, or that of all without one."""
        return label == OTHER or label in self._used

    def keep_up(self) -> None:
        """To be called now and then: workers learn which names are used, and which are gone. Raises OSError."""
        if self._shared is None:
            return
        now = self._clock()
        if now - self._stamped_at < STAMP_S:
            self._catch_up()
            return
        with self._shared.locked():
            self._catch_up()
            self._shared.write(self._used)
        self._stamped_at = now

    def _name(self, label: str, now: float) -> str:
        used = self._used.get(label)
        is_full = used is None and len(self._used) >= self._most
        if is_full and not self._give_back(now):
            return OTHER
        self._used[label] = now
        if self._shared is not None and (used is None or now - used >= FRESH_S):
            if is_full:
                self._shared.write(self._used)
            else:  # also of a name that was idle: the later line counts, until a worker's stamp makes the file anew
                self._shared.add(label, now)
        return label

    def _give_back(self, now: float) -> bool:
        """Whether there is room now."""
        idle = sorted((at, label) for label, at in self._used.items() if now - at >= IDLE_S)
        for _, label in idle[: max(1, self._most // PART)]:
            del self._used[label]
        if not idle:
            self._full_until = min(self._used.values()) + IDLE_S
        return bool(idle)

    def _catch_up(self) -> None:
        if self._shared is None:
            return
        is_whole, told = self._shared.news()
        mine = self._used
        if is_whole:
            self._used = {}
        for label, at in told:
            self._used[label] = max(at, mine.get(label, at))
