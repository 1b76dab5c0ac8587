"""Check the store's clock, which decides which hours are closed and what is too old to keep."""

from __future__ import annotations

from datetime import UTC, datetime

FAR_S = 3600  # greatest difference between clocks
DAY_S = 86_400
WEEK_DAYS = 7  # longest pause between runs without --accept-clock


class ClockWrong(Exception):
    """A clock cannot be right; the text says what to do."""


def check_machine(now_ms: int, driver_ms: int) -> None:
    """Raise ClockWrong if the store's clock is far from this machine's. Both in ms since 1970."""
    if abs(now_ms - driver_ms) > 1000 * FAR_S:
        _refuse(now_ms, f"this machine's clock says {_shown(driver_ms)}")


def check_last_run(now_ms: int, last_ms: int, retention_days: int) -> None:
    """Raise ClockWrong if the store's clock went back or jumped since the previous run.

    Where store and driver share a clock, only the previous run reveals a jump; so a jump never removes data unasked.

    Args:
        now_ms: time of the store.
        last_ms: time of the store at the previous run; 0: there was none.
        retention_days: days that data is kept; 0: unlimited.
    """
    days = min(WEEK_DAYS, retention_days or WEEK_DAYS)
    if last_ms and now_ms < last_ms - 1000 * FAR_S:
        _refuse(now_ms, f"it already said {_shown(last_ms)} for the previous run")
    if last_ms and now_ms > last_ms + 1000 * DAY_S * days:
        _refuse(now_ms, f"it said {_shown(last_ms)} for the previous run, more than {days} days ago")


def _refuse(now_ms: int, why: str) -> None:
    raise ClockWrong(
        f"the store's clock says {_shown(now_ms)}, but {why}: correct the wrong clock; if the store's clock is right, "
        "run once with --accept-clock"
    )


def _shown(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
