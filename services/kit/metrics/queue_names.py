"""Assign metric labels to a limited number of queues; all others are `_other`.

Prometheus keeps a series per label, so their number must be bounded for any number of queues. If all labels are in use,
a new queue takes that of a queue unused for `IDLE_S`; otherwise short-lived queues would occupy all labels for ever.
Until then a label is kept, because a series that restarts says less.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext

from services.kit.metrics.shared_names import SharedNames

OTHER = "_other"
IDLE_S = 900.0  # a label unused for this long may be released
FRESH_S = IDLE_S / 2  # a label is not released before a stamp has shown its last use
STAMP_S = 60.0  # how often a worker shares which labels it used
PART = 10  # release up to 1/10 of all labels at once: more will be needed soon


def label_of(name: str) -> str:
    """Return a queue's name as valid UTF-8. Names that become the same are summed up."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class QueueNames:
    """The labels in use. Workers agree on them by `shared`."""

    def __init__(
        self, most: int, shared: SharedNames | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Allow `most` labels. `clock` must be the same for all workers."""
        self._most = most
        self._shared = shared
        self._clock = clock
        self._used: dict[str, float] = {}  # label -> last known use
        self._full_until = -math.inf  # no label can be released before
        self._stamped_at = clock()

    def label(self, name: str) -> str:
        """Return the label of a queue, and record its use."""
        label, now = label_of(name), self._clock()
        used = self._used.get(label)
        # another worker may have released a label that was idle for long
        if used is not None and (self._shared is None or now - used < FRESH_S):
            self._used[label] = now
            return label
        if used is None and now < self._full_until:
            return OTHER
        try:
            with nullcontext() if self._shared is None else self._shared.locked():
                self._catch_up()
                return self._name(label, now)
        except OSError:  # out of descriptors or disk space: retried at the next use
            if used is None:
                self._used.pop(label, None)
                return OTHER
            self._used[label] = used
            return label

    def has(self, label: str) -> bool:
        """Return whether the label is in use, or is `_other`."""
        return label == OTHER or label in self._used

    def keep_up(self) -> None:
        """Share which labels are used and released: call it periodically. Raises OSError."""
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
        if is_full and not self._release_idle(now):
            return OTHER
        self._used[label] = now
        if self._shared is not None and (used is None or now - used >= FRESH_S):
            if is_full:
                self._shared.write(self._used)
            else:  # the last line of a label counts, until a worker rewrites the file
                self._shared.add(label, now)
        return label

    def _release_idle(self, now: float) -> bool:
        """Release idle labels. Return whether there were any."""
        idle = sorted((at, label) for label, at in self._used.items() if now - at >= IDLE_S)
        for _, label in idle[: max(1, self._most // PART)]:
            del self._used[label]
        if not idle:
            self._full_until = min(self._used.values()) + IDLE_S
        return bool(idle)

    def _catch_up(self) -> None:
        if self._shared is None:
            return
        is_whole, news = self._shared.news()
        mine = self._used
        if is_whole:
            self._used = {}
        for label, at in news:
            self._used[label] = max(at, mine.get(label, at))
