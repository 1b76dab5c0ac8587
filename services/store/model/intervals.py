"""Represent sets of sequence numbers as a few intervals, as in `1-100+105-200` (pubsub.md 4.4).

Sets are immutable values: every operation returns a new set.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter

Span = tuple[int, int]  # first and last number, both held

MAX_NUMBER = (1 << 53) - 1  # Redis functions count in doubles, which are exact up to here
NOTHING = "-"  # the text form of the empty set

_SPAN = re.compile(r"([1-9][0-9]{0,15})-([1-9][0-9]{0,15})")  # 16 digits: those of MAX_NUMBER
_first = itemgetter(0)
_last = itemgetter(1)


@dataclass(frozen=True, slots=True)
class Intervals:
    """A set of whole numbers from 1 to MAX_NUMBER; a non-empty set is true, and equal sets compare equal.

    `spans` are sorted and neither overlap nor touch. Create sets with `of` or `parse`, which ensure that.
    """

    spans: tuple[Span, ...] = ()

    @classmethod
    def of(cls, spans: Iterable[Span]) -> Intervals:
        """Build a set from spans in any order. Raises ValueError for a span that is empty or out of range."""
        return cls(_merged(sorted(_checked(*span) for span in spans)))

    @classmethod
    def parse(cls, text: str | bytes) -> Intervals:
        """Parse the text form; "" is the empty set, too. Raises ValueError for any other text."""
        shown = text.decode("ascii") if isinstance(text, bytes) else text
        return cls() if shown in ("", NOTHING) else cls.of(map(_parse_span, shown.split("+")))

    def format(self) -> str:
        """Return the shortest text form, ASCII."""
        return "+".join([f"{first}-{last}" for first, last in self.spans]) or NOTHING

    def add(self, first: int, last: int) -> Intervals:
        """Return this set with `first` to `last` added. Raises ValueError for a span that is empty or out of range."""
        first, last = _checked(first, last)
        # merge spans that touch the new one: 1-4 and 5-9 become 1-9
        start = bisect_left(self.spans, first - 1, key=_last)
        end = bisect_right(self.spans, last + 1, lo=start, key=_first)
        if start < end:
            first = min(first, self.spans[start][0])
            last = max(last, self.spans[end - 1][1])
        return Intervals((*self.spans[:start], (first, last), *self.spans[end:]))

    def union(self, other: Intervals) -> Intervals:
        """Return the numbers that are in at least one of the sets."""
        if not self.spans or not other.spans:
            return self if self.spans else other
        # sorting two sorted halves takes linear time
        return Intervals(_merged(sorted(self.spans + other.spans)))

    def minus(self, other: Intervals) -> Intervals:
        """Return the numbers of this set that are not in `other`."""
        return Intervals(tuple(_difference(self.spans, other.spans))) if other.spans else self

    def holds(self, number: int) -> bool:
        """Return whether the number is in the set."""
        return self.covers(number, number)

    def covers(self, first: int, last: int) -> bool:
        """Return whether every number from `first` to `last` is in the set."""
        index = bisect_left(self.spans, last, key=_last)
        return index < len(self.spans) and self.spans[index][0] <= first

    def total(self) -> int:
        """Return the number of elements."""
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
    """Merge sorted spans that overlap or touch."""
    merged: list[Span] = []
    for span in spans:
        if not merged or span[0] > merged[-1][1] + 1:
            merged.append(span)
        elif span[1] > merged[-1][1]:
            merged[-1] = (merged[-1][0], span[1])
    return tuple(merged)


def _difference(spans: tuple[Span, ...], holes: tuple[Span, ...]) -> Iterator[Span]:
    """Yield the spans without the holes, in one pass over both."""
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
