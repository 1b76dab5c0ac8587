"""Numbers as people read them."""

from __future__ import annotations

import pytest

from services.kit.formatting import (
    format_duration,
    format_hour,
    format_hour_end,
    format_number,
    format_octets,
    format_share,
    format_time,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (1.0, "100 %"),
        (0.99999, "99.999 %"),
        (0.0, "0 %"),
        (0.000012, "0.001 %"),
        (4.975, "497.5 %"),
    ],
)
def test_a_share_is_never_more_round_than_it_is(value: float | None, text: str) -> None:
    assert format_share(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0005, "0.5 ms"),
        (0.0, "0 ms"),
        (1.0, "1 s"),
        (90, "1.5 min"),
        (86400, "1 d"),
        (5400, "1.5 h"),
    ],
)
def test_times_have_a_unit_that_fits(value: float | None, text: str) -> None:
    assert format_duration(value) == text


def test_octets_have_a_unit_that_fits() -> None:
    assert [format_octets(each) for each in (1, 1536, 3 << 40)] == ["1 octets", "1.5 KiB", "3.0 TiB"]


def test_numbers_hours_and_moments() -> None:
    assert [format_number(each) for each in (None, 1234567, 2.0, 1.234)] == ["-", "1,234,567", "2", "1.23"]
    assert format_hour("2025-11-24T16") == "2025-11-24 16:00"
    assert format_hour_end("2025-12-31T23") == "2026-01-01 00:00"
    assert format_time(1_764_000_000_999) == "2025-11-24 16:00:00"
