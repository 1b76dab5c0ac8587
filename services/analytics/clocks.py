"""Whether the store's clock may be believed: it says which hours are closed, and what is too old to be kept."""

from __future__ import annotations

from datetime import UTC, datetime

FAR_S = 3600  # between clocks that should tell the same
DAY_S = 86_400
WEEK_DAYS = 7  # after which nobody comes back without saying so


class ClockWrong(Exception):
    """A clock that cannot be right; the text says what to do."""


def check(now_ms: int, driver_ms: int, last_ms: int, retention_days: int) -> None:
    """now_ms: of the store; last_ms: what that was for the run before, 0: there was none. Raises ClockWrong.

    Where both clocks are one, only the run before tells of a jump: so nothing that is kept goes all at once unasked.
    """
    days = min(WEEK_DAYS, retention_days or WEEK_DAYS)
    if abs(now_ms - driver_ms) > 1000 * FAR_S:
        _refuse(now_ms, f"this machine's clock says {_shown(driver_ms)}")
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
