"""Test the conversion of stored values: numbers, times, histograms; independent of their neighbours."""

from __future__ import annotations

from typing import Any

import pytest

from services.redis_stream import convert
from services.redis_stream.convert import Convert, Problems

ZEROS = b",".join([b"0"] * 16)
GOOD = {
    convert.count: b"1",
    convert.total: b"1",
    convert.small: b"1",
    convert.time: b"1000",
    convert.time_or_never: b"0",
    convert.histogram: ZEROS,
    convert.reasons: b"",
    convert.text: b"a",
}
WELL = [
    (convert.count, b"0", 0),
    (convert.count, b"007", 7),
    (convert.count, b"0" * 5000 + b"1", 1),
    (convert.count, b"1099511627776", 2**40),
    (convert.total, b"9007199254740992", 2**53),
    (convert.small, b"2147483647", 2**31 - 1),
    (convert.histogram, b",".join(b"%d" % n for n in range(16)), list(range(16))),
    (convert.histogram, b"1099511627776" + ZEROS[1:], [2**40, *[0] * 15]),
    (convert.reasons, b"full=3,paused=1", [("full", 3), ("paused", 1)]),
    (convert.reasons, b"full=3,full=1", [("full", 4)]),
    (convert.reasons, b"a=1099511627775,b=1", [("a", 2**40 - 1), ("b", 1)]),
    (convert.reasons, b"a=b=3", [("a=b", 3)]),
    (convert.text, "\u00e4\u0000".encode(), "\u00e4\u0000"),
    (convert.text, b"\xff\xed\xa0\x80", "\\xff\\xed\\xa0\\x80"),
]
WRONG = [
    *(
        (convert.count, value)
        for value in (b"", b"-1", b"-0", b"+1", b" 1", b"0x10", b"1.0", b"1e3", b"1_0", b"\xb2")
    ),
    *(
        (convert.count, value)
        for value in (b"1099511627777", b"9223372036854775808", b"9" * 5000, b"x" * 5000, "\u0661".encode())
    ),
    (convert.total, b"9007199254740993"),
    (convert.small, b"2147483648"),
    (convert.time, b"7258118400001"),
    (convert.time_or_never, b"7258118400001"),
    *(
        (convert.histogram, value)
        for value in (b"", ZEROS + b",0", ZEROS[2:], ZEROS[:-1], ZEROS[:-1] + b"0x1")
    ),
    *((convert.histogram, value) for value in (ZEROS[:-1] + b"-0", ZEROS + b"\n", b"9" * 19 + ZEROS[1:])),
    (convert.histogram, b"1099511627777" + ZEROS[1:]),
    *(
        (convert.reasons, value)
        for value in (b"full", b"full=", b"=1", b"full=1,", b"full=-1", b"a=9223372036854775808")
    ),
    (convert.reasons, b"a=9223372036854775808"),
    (convert.reasons, b"a=1099511627776,a=1"),
    (convert.reasons, b"a=1099511627776,b=1"),
]


def alone_and_beside(how: Convert, value: bytes) -> list[tuple[Any, str]]:
    """Return the value and its problems, converted alone and between others."""
    found = []
    for values, row in (([value], 0), ([GOOD[how], value, GOOD[how]], 1)):
        problems = Problems()
        column = how("it", values, problems)
        assert len(column) == len(values)
        assert set(problems.found) <= {row}
        found.append((column[row].as_py(), problems.found.get(row, "")))
    return found


@pytest.mark.parametrize(("how", "value", "expected"), WELL)
def test_what_is_well(how: Convert, value: bytes, expected: object) -> None:
    assert alone_and_beside(how, value) == [(expected, "")] * 2


@pytest.mark.parametrize(("how", "value"), WRONG)
def test_what_is_not_says_why(how: Convert, value: bytes) -> None:
    (alone, why), beside = alone_and_beside(how, value)
    assert (alone, why) == beside
    assert alone is None
    assert why.startswith(f"it is {convert.shown(value)}: not ")
    assert len(why) < 200


def test_times() -> None:
    problems = Problems()
    made = convert.time("at", [b"0", b"1700000000123", b"7258118400000"], problems)
    assert [str(each) for each in made] == [
        "1970-01-01 00:00:00+00:00",
        "2023-11-14 22:13:20.123000+00:00",
        "2200-01-01 00:00:00+00:00",
    ]
    assert convert.time_or_never("at", [b"0", b"1"], problems).null_count == 1
    assert problems.found == {}
