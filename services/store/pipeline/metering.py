"""Incremental reports of a process's activity per queue, for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class Activity(NamedTuple):
    """Counts of messages and of octets (bodies and attributes), and two histograms (buckets.py)."""

    numbers: tuple[int, ...]  # accepted, accepted_octets, given, given_octets, acked, returned, rejected
    refused: Counter[str]  # by the reason of the error
    put: list[int]
    wait: list[int]

    def plus(self, other: Activity, sign: int = 1) -> Activity:
        """Return the sum of both, or with sign=-1 the difference."""
        refused = Counter(self.refused)
        for reason, number in other.refused.items():
            refused[reason] += sign * number
        numbers = tuple(_added(self.numbers, other.numbers, sign))
        put, wait = _added(self.put, other.put, sign), _added(self.wait, other.wait, sign)
        return Activity(numbers, refused, put, wait)


def _added(one: Sequence[int], other: Sequence[int], sign: int) -> list[int]:
    return [a + sign * b for a, b in zip(one, other, strict=True)]


@runtime_checkable
class Timed(Protocol):
    """An observer of the store that measures its latency."""

    def took(self, seconds: float) -> None:
        """Observe the time from the first sending of a call until it was done and replicated as required."""


ReportActivity = Callable[[str, Activity], None]  # queue name, activity since the last report


@runtime_checkable
class Metered(Protocol):
    """An observer of the store that measures the activity of each queue."""

    def meter(self, ask: Callable[[], None]) -> ReportActivity | None:
        """Return the receiver of activity reports, None to get none. Calling `ask` reports at once."""
