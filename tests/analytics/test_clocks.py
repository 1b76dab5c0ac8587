"""Test clocks that are refused and accepted (docs/analytics.md, "Clocks")."""

from __future__ import annotations

import pytest

from services.analytics.clocks import ClockWrong, check

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.mark.parametrize("driver_ms", [NOW_MS, NOW_MS - HOUR_MS, NOW_MS + HOUR_MS])
@pytest.mark.parametrize(
    ("last_ms", "retention_days"),
    [
        *((0, days) for days in (0, 1)),
        *((NOW_MS + HOUR_MS, days) for days in (0, 1)),
        *((NOW_MS - DAY_MS, days) for days in (0, 1, 30)),
        *((NOW_MS - 7 * DAY_MS, days) for days in (0, 7, 30)),
    ],
)
def test_what_can_be(driver_ms: int, last_ms: int, retention_days: int) -> None:
    check(NOW_MS, driver_ms, last_ms, retention_days)


@pytest.mark.parametrize(
    ("driver_ms", "last_ms", "retention_days", "why"),
    [
        (NOW_MS - HOUR_MS - 1, 0, 0, "this machine's clock says 2027-01-15 06:59:59 UTC"),
        (NOW_MS + HOUR_MS + 1, NOW_MS, 0, "this machine's clock says 2027-01-15 09:00:00 UTC"),
        (NOW_MS, NOW_MS + HOUR_MS + 1, 0, "it already said 2027-01-15 09:00:00 UTC for the previous run"),
        (
            NOW_MS,
            NOW_MS - 7 * DAY_MS - 1,
            30,
            "it said 2027-01-08 07:59:59 UTC for the previous run, more than 7 days ago",
        ),
        (NOW_MS, NOW_MS - 2 * DAY_MS - 1, 2, "more than 2 days ago"),
    ],
)
def test_what_cannot(driver_ms: int, last_ms: int, retention_days: int, why: str) -> None:
    with pytest.raises(ClockWrong, match=f"says 2027-01-15 08:00:00 UTC, but .*{why}.*--accept-clock"):
        check(NOW_MS, driver_ms, last_ms, retention_days)
