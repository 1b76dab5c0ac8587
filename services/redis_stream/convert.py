"""Convert columns of stored values a page at a time; an unreadable value is a problem of its row only.

A column is converted as a whole; values are inspected one by one only if that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from services.redis_stream.schema import COUNTS, INT, LONG, OCTETS, REASONS, TEXT, TIME
from services.store.model import CLASSES

LATEST_MS = 7_258_118_400_000  # the year 2200; later times are invalid
MAX_LONG = (1 << 63) - 1
# More than an interval can have. Sums of an hour stay exact in 64 bits, up to 2**23 such samples.
MOST_COUNTED = 1 << 40
# More than a queue can have had in its life, in messages, octets or ms; floats represent these exactly.
MOST_EVER = 1 << 53
MAX_INT = (1 << 31) - 1
DIGITS = 19
HISTOGRAM = r"^[0-9]+(,[0-9]+){15}$"  # CLASSES of them
SHOWN = 40  # characters of a bad value in an error


@dataclass
class Problems:
    """Why rows cannot be read: the first reason of each."""

    found: dict[int, str] = field(default_factory=dict)

    def add(self, row: int, why: str) -> None:
        """Note a reason, unless the row has one."""
        self.found.setdefault(row, why)


Values = Sequence[bytes]
Convert = Callable[[str, Values, Problems], pa.Array]


def shown(value: bytes) -> str:
    """Return the part of a value that an error may show."""
    return repr(value[:SHOWN].decode("utf-8", "backslashreplace")) + ("..." if len(value) > SHOWN else "")


def octets(_name: str, values: Values, _problems: Problems) -> pa.Array:
    """Return a column of octets."""
    return pa.array(values, OCTETS)


def text(_name: str, values: Values, _problems: Problems) -> pa.Array:
    r"""Return a column of texts; octets that are not UTF-8 become `\xNN`."""
    try:
        return pa.array(values, OCTETS).cast(TEXT)
    except pa.ArrowInvalid:
        return pa.array([value.decode("utf-8", "backslashreplace") for value in values], TEXT)


def count(name: str, values: Values, problems: Problems) -> pa.Array:
    """Return a column of counts of an interval, from 0 to MOST_COUNTED."""
    return _numbers(name, values, problems, MOST_COUNTED)


def total(name: str, values: Values, problems: Problems) -> pa.Array:
    """Return a column of totals since a queue's creation, from 0 to MOST_EVER."""
    return _numbers(name, values, problems, MOST_EVER)


def small(name: str, values: Values, problems: Problems) -> pa.Array:
    """Return a column of 32-bit numbers."""
    return _numbers(name, values, problems, MAX_INT).cast(INT)


def time(name: str, values: Values, problems: Problems) -> pa.Array:
    """Return a column of times from ms since 1970."""
    return as_time(_numbers(name, values, problems, LATEST_MS))


def time_or_never(name: str, values: Values, problems: Problems) -> pa.Array:
    """Return a column of times from ms since 1970; null for 0."""
    numbers = _numbers(name, values, problems, LATEST_MS)
    return as_time(pc.if_else(pc.equal(numbers, 0), pa.scalar(None, LONG), numbers))


def as_time(milliseconds: pa.Array) -> pa.Array:
    """Return ms since 1970 as times."""
    return pc.multiply(milliseconds, 1000).cast(TIME)


def _numbers(name: str, values: Values, problems: Problems, most: int) -> pa.Array:
    try:
        texts = pa.array(values, OCTETS).cast(TEXT)
        numbers = texts.cast(LONG)  # the cast also accepts 0x10
        if pc.all(pc.ascii_is_decimal(texts)).as_py() and pc.max(numbers).as_py() <= most:
            return numbers
    except pa.ArrowInvalid:
        pass
    return pa.array([_number(name, row, value, problems, most) for row, value in enumerate(values)], LONG)


def _number(name: str, row: int, value: bytes, problems: Problems, most: int) -> int | None:
    if (number := whole(value)) is not None and number <= most:
        return number
    problems.add(row, f"{name} is {shown(value)}: not a number from 0 to {most}")
    return None


def whole(value: bytes) -> int | None:
    """Return the number in decimal digits, or None for other values and numbers above 63 bits."""
    digits = value.lstrip(b"0") if value.isdigit() else b"-"
    if digits == b"-" or len(digits) > DIGITS:
        return None
    number = int(digits or b"0")
    return number if number <= MAX_LONG else None


def histogram(name: str, values: Values, problems: Problems) -> pa.Array:
    """Return a column of histograms: 16 counts separated by commas, each up to MOST_COUNTED."""
    try:
        texts = pa.array(values, OCTETS).cast(TEXT)
        if pc.all(pc.match_substring_regex(texts, HISTOGRAM)).as_py():
            counts = pc.split_pattern(texts, ",").cast(COUNTS)
            if pc.max(pc.list_flatten(counts)).as_py() <= MOST_COUNTED:
                return counts
    except pa.ArrowInvalid:
        pass
    return pa.array([_counts(name, row, value, problems) for row, value in enumerate(values)], COUNTS)


def _counts(name: str, row: int, value: bytes, problems: Problems) -> list[int] | None:
    counts = [number for part in value.split(b",") if (number := whole(part)) is not None]
    if len(counts) == CLASSES == value.count(b",") + 1 and max(counts) <= MOST_COUNTED:
        return counts
    why = f"not {CLASSES} numbers with commas between them, each up to {MOST_COUNTED}"
    problems.add(row, f"{name} is {shown(value)}: {why}")
    return None


def reasons(name: str, values: Values, problems: Problems) -> pa.Array:
    """Return a column of counts by reason, such as 'full=3,paused=1', up to MOST_COUNTED together."""
    known: dict[bytes, list[tuple[str, int]] | None] = {b"": []}
    found = []
    for row, value in enumerate(values):
        told = known.get(value)
        if told is None:
            told = known[value] = _reasons(name, row, value, problems)
        found.append(told)
    return pa.array(found, REASONS)


def _reasons(name: str, row: int, value: bytes, problems: Problems) -> list[tuple[str, int]] | None:
    found: dict[str, int] = {}
    for part in value.split(b","):
        reason, _, told = part.rpartition(b"=")
        word = reason.decode("utf-8", "backslashreplace")
        number = whole(told)
        found[word] = found.get(word, 0) + (number or 0)
        if not reason or number is None or sum(found.values()) > MOST_COUNTED:
            why = f"not '<reason>=<number>' with commas between them, {MOST_COUNTED} together at most"
            problems.add(row, f"{name} is {shown(value)}: {why}")
            return None
    return sorted(found.items())


def id_times(ids: pa.Array) -> pa.Array:
    """Return when entries were added, by their ids; null after the year 2200."""
    first = pc.list_element(pc.split_pattern(ids, "-", max_splits=1), 0)
    numbers = first.cast(pa.uint64())  # an id may have any of them
    is_late = pc.greater(numbers, pa.scalar(LATEST_MS, pa.uint64()))
    return as_time(pc.if_else(is_late, pa.scalar(None, LONG), numbers.cast(LONG, safe=False)))
