"""Which numbers of a row are held: normally all from the first on, so a few intervals say it (pubsub.md 4.4).

    1-100+105-200

Sets are values: every operation makes another one and leaves its operands as they were.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter

Span = tuple[int, int]  # first and last number, both held

MAX_NUMBER = (1 << 53) - 1  # the functions inside Redis count in doubles, which are exact up to here
NOTHING = "-"  # the text form of the empty set

_SPAN = re.compile(r"([1-9][0-9]{0,15})-([1-9][0-9]{0,15})")  # 16 digits: those of MAX_NUMBER
_first = itemgetter(0)
_last = itemgetter(1)


@dataclass(frozen=True, slots=True)
class Intervals:
    """A set of whole numbers from 1 to MAX_NUMBER. True if it is not empty; equal sets are equal values.

    `spans` are sorted and neither overlap nor touch; made from outside by `of` or `parse`, which see to that.
    """

    spans: tuple[Span, ...] = ()

    @classmethod
    def of(cls, spans: Iterable[Span]) -> Intervals:
        """Any spans, in any order. Raises ValueError if one is empty or out of range."""
        return cls(_merged(sorted(_checked(*span) for span in spans)))

    @classmethod
    def parse(cls, text: str | bytes) -> Intervals:
        """The text form; "" is the empty set too. Raises ValueError on anything else."""
        shown = text.decode("ascii") if isinstance(text, bytes) else text
        return cls() if shown in ("", NOTHING) else cls.of(map(_parse_span, shown.split("+")))

    def format(self) -> str:
        """The text form: ASCII, the shortest that says it."""
        return "+".join([f"{first}-{last}" for first, last in self.spans]) or NOTHING

    def add(self, first: int, last: int) -> Intervals:
        """This set and the numbers from `first` to `last`. Raises ValueError if there are none or out of range."""
        first, last = _checked(first, last)
        # what touches the new span becomes one with it: 1-4 and 5-9 are 1-9
        start = bisect_left(self.spans, first - 1, key=_last)
        end = bisect_right(self.spans, last + 1, lo=start, key=_first)
        if start < end:
            first = min(first, self.spans[start][0])
            last = max(last, self.spans[end - 1][1])
        return Intervals((*self.spans[:start], (first, last), *self.spans[end:]))

    def union(self, other: Intervals) -> Intervals:
        """The numbers that at least one of both holds."""
        if not self.spans or not other.spans:
            return self if self.spans else other
        return Intervals(
            _merged(sorted(self.spans + other.spans))
        )  # two sorted halves: sorted in linear time

    def minus(self, other: Intervals) -> Intervals:
        """The numbers of this set that `other` does not hold."""
        return Intervals(tuple(_difference(self.spans, other.spans))) if other.spans else self

    def holds(self, number: int) -> bool:
        return self.covers(number, number)

    def covers(self, first: int, last: int) -> bool:
        """Whether every number from `first` to `last` is held."""
        index = bisect_left(self.spans, last, key=_last)
        return index < len(self.spans) and self.spans[index][0] <= first

    def total(self) -> int:
        """How many numbers are held."""
        return sum([last - first + 1 for first, last in self.spans])

    def __bool__(self) -> bool:
        return bool(self.spans)


def _checked(first: int, last: int) -> Span:
    if not 1 <= first <= last <= MAX_NUMBER:
        raise ValueError(f"not an interval of numbers from 1 to {MAX_NUMBER}: {first}-{last}")
    return first, last


def _parse_span(text: str) -> Span:
    if not (match := _SPAN.fullmatch(text)):
        raise ValueError(f"not an interval: {text[:40]!r}")
    return int(match[1]), int(match[2])


def _merged(spans: list[Span]) -> tuple[Span, ...]:
    """Sorted spans, those that overlap or touch made one."""
    merged: list[Span] = []
    for span in spans:
        if not merged or span[0] > merged[-1][1] + 1:
            merged.append(span)
        elif span[1] > merged[-1][1]:
            merged[-1] = (merged[-1][0], span[1])
    return tuple(merged)


def _difference(spans: tuple[Span, ...], holes: tuple[Span, ...]) -> Iterator[Span]:
    """What the holes leave of the spans; both are walked once, side by side."""
    index = bisect_left(holes, spans[0][0], key=_last) if spans else 0
    for first, last in spans:
        while index < len(holes) and holes[index][0] <= last:
            if first < holes[index][0]:
                yield first, holes[index][0] - 1
            first = max(first, holes[index][1] + 1)
            if first > last:
                break  # the hole may reach into the next span
            index += 1
        if first <= last:
            yield first, last
