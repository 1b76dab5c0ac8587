"""What a process did with a queue, told again and again to whoever shows it: each time what came since the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class Done(NamedTuple):
    """Messages, octets of bodies and attributes, classes of times (buckets.py)."""

    numbers: tuple[int, ...]  # accepted, accepted_octets, given, given_octets, acked, returned, rejected
    refused: Counter[str]  # by the reason of the error
    put: list[int]
    wait: list[int]

    def plus(self, other: Done, sign: int = 1) -> Done:
        refused = Counter(self.refused)
        for reason, number in other.refused.items():
            refused[reason] += sign * number
        numbers = tuple(_added(self.numbers, other.numbers, sign))
        return Done(numbers, refused, _added(self.put, other.put, sign), _added(self.wait, other.wait, sign))


def _added(one: Sequence[int], other: Sequence[int], sign: int) -> list[int]:
    return [a + sign * b for a, b in zip(one, other, strict=True)]


@runtime_checkable
class Timed(Protocol):
    """An observer of the store that also wants to hear how long its answers take."""

    def took(self, seconds: float) -> None:
        """A call was answered so long after it was first sent: done, and where its replicas must have it, they do."""


Hear = Callable[[str, Done], None]  # of the queue of this name


@runtime_checkable
class Metered(Protocol):
    """An observer of the store that also wants to hear what is done with each queue."""

    def meter(self, ask: Callable[[], None]) -> Hear | None:
        """Answers who is to hear it, None: nobody wants to. Whoever calls `ask` has all of it told by then."""
