"""Numbers and times as people read them, the same wherever the product says them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NO_VALUE = "-"
OCTETS = ("octets", "KiB", "MiB", "GiB", "TiB")
TIMES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (0.001, "ms"))


def format_number(value: float | None) -> str:
    """1,234,567; parts of one with two digits."""
    if value is None:
        return NO_VALUE
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def format_share(value: float | None) -> str:
    """0.99912 -> 99.912 %: never 100 % of what is less, nor 0 of what is more."""
    if value is None:
        return NO_VALUE
    for digits in (1, 2, 3, 4):
        text = f"{value:.{digits}%}"
        if (text == f"{1:.{digits}%}") == (value == 1) and (text == f"{0:.{digits}%}") == (value == 0):
            break
    return text.replace("%", " %").replace(".0 %", " %")


def format_duration(value: float | None) -> str:
    """0.0005 -> 0.5 ms, 90 -> 1.5 min."""
    if value is None:
        return NO_VALUE
    unit, name = next((each for each in TIMES if value >= each[0]), TIMES[-1])
    return f"{value / unit:.3g} {name}"


def format_octets(value: float) -> str:
    for name in OCTETS:
        if value < 1024 or name == OCTETS[-1]:
            break
        value /= 1024
    return f"{value:,.0f} {name}" if name == OCTETS[0] else f"{value:,.1f} {name}"


def format_hour(text: str) -> str:
    """'2025-11-24T16' -> '2025-11-24 16:00'."""
    return f"{text.replace('T', ' ')}:00"


def format_hour_end(text: str) -> str:
    """'2025-11-24T23' -> '2025-11-25 00:00'."""
    return f"{datetime.strptime(text, '%Y-%m-%dT%H') + timedelta(hours=1):%Y-%m-%d %H:%M}"


def format_time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
