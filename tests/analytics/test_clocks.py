"""Test clocks that are refused and accepted (docs/analytics.md, "Clocks")."""

from __future__ import annotations

import pytest

from services.analytics.clocks import ClockWrong, check_last_run, check_machine

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SAYS = "says 2027-01-15 08:00:00 UTC, but .*{}.*--accept-clock"


@pytest.mark.parametrize("driver_ms", [NOW_MS, NOW_MS - HOUR_MS, NOW_MS + HOUR_MS])
def test_clocks_an_hour_apart_are_accepted(driver_ms: int) -> None:
    check_machine(NOW_MS, driver_ms)


@pytest.mark.parametrize(("by_ms", "said"), [(-1, "06:59:59"), (1, "09:00:00")])
def test_clocks_more_than_an_hour_apart_are_refused(by_ms: int, said: str) -> None:
    driver_ms = NOW_MS + (HOUR_MS + 1) * by_ms
    with pytest.raises(ClockWrong, match=SAYS.format(f"this machine's clock says 2027-01-15 {said} UTC")):
        check_machine(NOW_MS, driver_ms)


@pytest.mark.parametrize(
    ("last_ms", "retention_days"),
    [
        *((0, days) for days in (0, 1)),
        *((NOW_MS + HOUR_MS, days) for days in (0, 1)),
        *((NOW_MS - DAY_MS, days) for days in (0, 1, 30)),
        *((NOW_MS - 7 * DAY_MS, days) for days in (0, 7, 30)),
    ],
)
def test_a_clock_that_went_on_since_the_last_run_is_accepted(last_ms: int, retention_days: int) -> None:
    check_last_run(NOW_MS, last_ms, retention_days)


@pytest.mark.parametrize(
    ("last_ms", "retention_days", "why"),
    [
        (NOW_MS + HOUR_MS + 1, 0, "it already said 2027-01-15 09:00:00 UTC for the previous run"),
        (NOW_MS - 7 * DAY_MS - 1, 30, "it said 2027-01-08 07:59:59 UTC for the .* run, more than 7 days ago"),
        (NOW_MS - 2 * DAY_MS - 1, 2, "more than 2 days ago"),
    ],
)
def test_a_clock_that_jumped_since_the_last_run_is_refused(
    last_ms: int, retention_days: int, why: str
) -> None:
    with pytest.raises(ClockWrong, match=SAYS.format(why)):
        check_last_run(NOW_MS, last_ms, retention_days)
